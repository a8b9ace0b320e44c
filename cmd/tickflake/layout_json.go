package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// layoutJSON is the JSON of a layout.
type layoutJSON struct {
	Name         string     `json:"name"`
	Spec         string     `json:"spec"`
	Epoch        string     `json:"epoch"`
	Tick         string     `json:"tick"`
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

// writeJSON writes the layout as one object on one line, with the demand that it was
// planned for, if demand is not nil.
func writeJSON(w io.Writer, l snowflake.Layout, demand *snowflake.Demand, now time.Time) error {
	capacity := l.Capacity()
	parts := make([]partJSON, len(l.Parts))
	for i, p := range l.Parts {
		parts[i] = partJSON(p)
	}
	object := layoutJSON{
		Name:         l.Name,
		Spec:         l.String(),
		Epoch:        l.Epoch.UTC().Format(time.RFC3339Nano),
		Tick:         l.Tick.String(),
		TimeBits:     l.TimeBits,
		NodeBits:     l.NodeBits,
		SequenceBits: l.SequenceBits,
		Order:        l.Order.String(),
		Parts:        parts,
		IDsPerTick:   capacity.IDsPerTick,
		IDsPerSecond: capacity.IDsPerSecond,
		Nodes:        capacity.Nodes,
		Years:        capacity.Years,
		Last:         capacity.Last.Format(time.RFC3339Nano),
		Over:         isOver(l, now),
	}
	if demand != nil {
		object.Demand = &demandJSON{demand.Nodes, demand.RatePerNode, demand.Years}
	}
	return json.NewEncoder(w).Encode(object)
}
