package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

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
			numberText(capacity.IDsPerSecond), numberText(float64(capacity.Nodes)))
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
	row("lifetime", "%s years", numberText(capacity.Years))
	over := ""
	if isOver(l, now) {
		over = " (over: it decodes old IDs, but needs another epoch to issue new ones)"
	}
	row("last instant", "%s%s", capacity.Last.Format(time.RFC3339Nano), over)
	row("nodes", "%s", numberText(float64(capacity.Nodes)))
	row("IDs per node", "%s per tick, %s per second", numberText(float64(capacity.IDsPerTick)), numberText(capacity.IDsPerSecond))
	row("spec", "%s", l)
	_, err := io.WriteString(w, b.String())
	return err
}

func isOver(l snowflake.Layout, now time.Time) bool { return !now.Before(l.End()) }

func usedBits(l snowflake.Layout) int { return l.TimeBits + l.NodeBits + l.SequenceBits }

// numberText writes a number for people: large ones in groups of three digits,
// small ones with three significant digits.
func numberText(f float64) string {
	const exact = 1 << 53
	switch {
	case f >= exact:
		return strconv.FormatFloat(f, 'g', 4, 64)
	case f < 100 && f != math.Trunc(f):
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(math.Trunc(f), 'f', -1, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
