package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

// layoutInfo is the JSON of a layout.
type layoutInfo struct {
	Name         string     `json:"name"`
	Spec         string     `json:"spec"`
	Epoch        string     `json:"epoch"`
	Tick         float64    `json:"tick_seconds"`
	TimeBits     int        `json:"time_bits"`
	NodeBits     int        `json:"node_bits"`
	SequenceBits int        `json:"sequence_bits"`
	Order        string     `json:"order"`
	Parts        []partJSON `json:"parts"`
	IDsPerTick   int64      `json:"ids_per_tick"`
	IDsPerSecond float64    `json:"ids_per_second"`
	Nodes        int64      `json:"nodes"`
	Years        float64    `json:"years"`
	Last         string     `json:"last"`
	Over         bool       `json:"over"`

	Demand *demandJSON `json:"demand,omitempty"` // of a planned layout

	layout snowflake.Layout
}

type demandJSON struct {
	Nodes       int64   `json:"nodes"`
	RatePerNode float64 `json:"rate_per_node"`
	Years       float64 `json:"years"`
}

type partJSON struct {
	Name string `json:"name"`
	Bits int    `json:"bits"`
}

func infoOf(l snowflake.Layout) layoutInfo {
	capacity := l.Capacity()
	i := layoutInfo{
		Name: l.Name, Spec: l.String(), Epoch: l.Epoch.UTC().Format(time.RFC3339Nano), Tick: l.Tick.Seconds(),
		TimeBits: l.TimeBits, NodeBits: l.NodeBits, SequenceBits: l.SequenceBits, Order: l.Order.String(), Parts: make([]partJSON, len(l.Parts)),
		IDsPerTick: capacity.IDsPerTick, IDsPerSecond: capacity.IDsPerSecond, Nodes: capacity.Nodes, Years: capacity.Years,
		Last: capacity.Last.Format(time.RFC3339Nano), Over: !time.Now().Before(l.End()), layout: l,
	}
	for j, p := range l.Parts {
		i.Parts[j] = partJSON(p)
	}
	return i
}

// printLayouts writes one line for each layout.
func printLayouts(w io.Writer, format string, layouts ...layoutInfo) error {
	return command.Print(w, format, layouts, []string{"NAME", "FIELDS", "TICK", "EPOCH", "ENDS", ">IDS/S PER NODE", ">NODES"}, func(i layoutInfo) []string {
		ends := i.layout.End().Format(time.DateOnly)
		if i.Over {
			ends += " (over)"
		}
		return []string{i.Name, i.fields(), i.layout.Tick.String(), i.layout.Epoch.UTC().Format(time.DateOnly), ends, command.Number(i.IDsPerSecond), command.Number(i.Nodes)}
	})
}

// fields returns the widths of the three fields, high bits first.
func (i layoutInfo) fields() string {
	if i.layout.Order == snowflake.TimeSequenceNode {
		return fmt.Sprintf("time %d, sequence %d, node %d", i.TimeBits, i.SequenceBits, i.NodeBits)
	}
	return fmt.Sprintf("time %d, node %d, sequence %d", i.TimeBits, i.NodeBits, i.SequenceBits)
}

// describe writes the bits and the figures of a layout, and the rows of more.
func (i layoutInfo) describe(w io.Writer, more ...[]string) error {
	if i.Name != "" {
		fmt.Fprintf(w, "%s\n\n", i.Name)
	}
	last := i.Last
	if i.Over {
		last += " (over: it decodes old IDs, but needs another epoch to issue new ones)"
	}
	return command.Table(w, nil, append([][]string{
		{"fields", fmt.Sprintf("%s: %d of 63 bits", i.fields(), usedBits(i.layout))},
		{"bits", bits(i.layout)},
		{"tick", i.layout.Tick.String()},
		{"epoch", i.Epoch},
		{"lifetime", command.Number(i.Years) + " years"},
		{"last instant", last},
		{"nodes", command.Number(i.Nodes)},
		{"IDs per node", fmt.Sprintf("%s per tick, %s per second", command.Number(i.IDsPerTick), command.Number(i.IDsPerSecond))},
		{"spec", i.Spec},
	}, more...))
}

func usedBits(l snowflake.Layout) int { return l.TimeBits + l.NodeBits + l.SequenceBits }

// bits returns which of the 64 bits of an ID is what, high ones first. The first are the sign and what the layout leaves
// unused, which are always 0.
func bits(l snowflake.Layout) string {
	fields := append([]snowflake.Part{{Name: "0", Bits: 64 - usedBits(l)}, {Name: "time", Bits: l.TimeBits}}, l.Parts...)
	if len(l.Parts) == 0 {
		fields = append(fields, snowflake.Part{Name: "node", Bits: l.NodeBits})
	}
	sequence := len(fields)
	if l.Order == snowflake.TimeSequenceNode {
		sequence = 2
	}
	fields = slices.Insert(fields, sequence, snowflake.Part{Name: "sequence", Bits: l.SequenceBits})
	high, texts := 64, []string(nil)
	for _, f := range fields {
		if high -= f.Bits; f.Bits > 0 {
			texts = append(texts, fmt.Sprintf("%d-%d %s", high+f.Bits-1, high, f.Name))
		}
	}
	return strings.Join(texts, ", ")
}
