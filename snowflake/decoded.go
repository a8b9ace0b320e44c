package snowflake

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decoded is an ID taken apart by [Layout.Decode].
type Decoded struct {
	// ID is the number that was decoded.
	ID ID
	// Time is the start of the ID's tick, in UTC.
	Time time.Time
	// Node is the whole node number.
	Node int64
	// Parts holds the named parts of the node; nil if the layout names none.
	Parts map[string]int64
	// Sequence is the number of the ID within its tick and node.
	Sequence int64
}

// MarshalJSON returns an object with the fields id (a string, because a
// JavaScript number keeps only 53 bits), time (RFC 3339 in UTC with
// milliseconds, and with more digits where the time has them),
// node (a number), parts (an object by name, {} when the layout names none) and
// sequence (a number).
func (d Decoded) MarshalJSON() ([]byte, error) {
	parts := d.Parts
	if parts == nil {
		parts = map[string]int64{}
	}
	return json.Marshal(struct {
		ID       string           `json:"id"`
		Time     string           `json:"time"`
		Node     int64            `json:"node"`
		Parts    map[string]int64 `json:"parts"`
		Sequence int64            `json:"sequence"`
	}{strconv.FormatInt(int64(d.ID), 10), d.timeText(), d.Node, parts, d.Sequence})
}

// String returns the decoded ID on one line, with parts in order of their names:
//
//	1541815603606036480: 2022-06-28T16:07:40.105Z, node 378 (datacenter 11, worker 26), sequence 0
func (d Decoded) String() string {
	var parts string
	if len(d.Parts) > 0 {
		texts := make([]string, 0, len(d.Parts))
		for _, name := range slices.Sorted(maps.Keys(d.Parts)) {
			texts = append(texts, fmt.Sprintf("%s %d", name, d.Parts[name]))
		}
		parts = " (" + strings.Join(texts, ", ") + ")"
	}
	return fmt.Sprintf("%d: %s, node %d%s, sequence %d", int64(d.ID), d.timeText(), d.Node, parts, d.Sequence)
}

// timeText always writes milliseconds, so that texts line up and sort, and more digits
// where the time has them.
func (d Decoded) timeText() string {
	format := "2006-01-02T15:04:05.000Z07:00"
	switch ns := d.Time.Nanosecond(); {
	case ns%1e3 != 0:
		format = "2006-01-02T15:04:05.000000000Z07:00"
	case ns%1e6 != 0:
		format = "2006-01-02T15:04:05.000000Z07:00"
	}
	return d.Time.UTC().Format(format)
}
