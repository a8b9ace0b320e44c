package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

// writeTable writes one line for each layout.
func writeTable(w io.Writer, layouts []snowflake.Layout, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// A tab writer aligns all columns or none to the right, hence the widths.
	const line = "%s\t%s\t%s\t%s\t%s\t%14s\t%9s\n"
	fmt.Fprintf(t, line, "NAME", "FIELDS", "TICK", "EPOCH", "ENDS", "IDS/S PER NODE", "NODES")
	for _, l := range layouts {
		ends := l.End().Format(time.DateOnly)
		if isOver(l, now) {
			ends += " (over)"
		}
		capacity := l.Capacity()
		fmt.Fprintf(t, line, l.Name, fieldsText(l), l.Tick, l.Epoch.UTC().Format(time.DateOnly), ends,
			command.Number(capacity.IDsPerSecond), command.Number(capacity.Nodes))
	}
	return t.Flush()
}

// fieldsText returns the widths of the three fields, high bits first.
func fieldsText(l snowflake.Layout) string {
	if l.Order == snowflake.TimeSequenceNode {
		return fmt.Sprintf("time %d, sequence %d, node %d", l.TimeBits, l.SequenceBits, l.NodeBits)
	}
	return fmt.Sprintf("time %d, node %d, sequence %d", l.TimeBits, l.NodeBits, l.SequenceBits)
}

// writeDescription writes the diagram and the figures of a layout.
func writeDescription(w io.Writer, l snowflake.Layout, now time.Time) error {
	capacity := l.Capacity()
	var b strings.Builder
	if l.Name != "" {
		fmt.Fprintf(&b, "%s\n\n", l.Name)
	}
	b.WriteString(diagram(l))
	b.WriteString("\n")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("fields", "%s: %d of 63 bits", fieldsText(l), usedBits(l))
	row("tick", "%s", l.Tick)
	row("epoch", "%s", l.Epoch.UTC().Format(time.RFC3339Nano))
	row("lifetime", "%s years", command.Number(capacity.Years))
	over := ""
	if isOver(l, now) {
		over = " (over: it decodes old IDs, but needs another epoch to issue new ones)"
	}
	row("last instant", "%s%s", capacity.Last.Format(time.RFC3339Nano), over)
	row("nodes", "%s", command.Number(capacity.Nodes))
	row("IDs per node", "%s per tick, %s per second", command.Number(capacity.IDsPerTick), command.Number(capacity.IDsPerSecond))
	row("spec", "%s", l)
	_, err := io.WriteString(w, b.String())
	return err
}

func isOver(l snowflake.Layout, now time.Time) bool { return !now.Before(l.End()) }

func usedBits(l snowflake.Layout) int { return l.TimeBits + l.NodeBits + l.SequenceBits }
