package snowflake

import (
	"encoding/json"
	"slices"
	"strconv"
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
	}{d.ID.String(), string(d.appendTime(nil)), d.Node, parts, d.Sequence})
}

// String returns the decoded ID on one line, with parts in order of their names:
//
//	1541815603606036480: 2022-06-28T16:07:40.105Z, node 378 (datacenter 11, worker 26), sequence 0
func (d Decoded) String() string {
	b := strconv.AppendInt(make([]byte, 0, textSize), int64(d.ID), 10)
	b = append(b, ": "...)
	b = d.appendTime(b)
	b = append(b, ", node "...)
	b = strconv.AppendInt(b, d.Node, 10)
	if len(d.Parts) > 0 {
		names := make([]string, 0, 8)
		for name := range d.Parts {
			names = append(names, name)
		}
		slices.Sort(names)
		open := " ("
		for _, name := range names {
			b = append(append(append(b, open...), name...), ' ')
			b = strconv.AppendInt(b, d.Parts[name], 10)
			open = ", "
		}
		b = append(b, ')')
	}
	b = append(b, ", sequence "...)
	return string(strconv.AppendInt(b, d.Sequence, 10))
}

// textSize is room for most texts, so that they take one allocation.
const textSize = 192

// appendTime always writes milliseconds, so that texts line up and sort, and more digits
// where the time has them.
func (d Decoded) appendTime(b []byte) []byte {
	b = d.Time.UTC().AppendFormat(b, time.RFC3339) // many times as fast as a format with digits
	ns, digits := d.Time.Nanosecond(), 3
	switch {
	case ns%1e3 != 0:
		digits = 9
	case ns%1e6 != 0:
		digits = 6
	}
	z := len(b) - 1
	b = strconv.AppendInt(b[:z], 1e9+int64(ns), 10) // 1 and nine digits
	b[z] = '.'
	return append(b[:z+1+digits], 'Z')
}
