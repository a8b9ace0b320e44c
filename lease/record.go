package lease

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/tickflake/tickflake/snowflake"
)

// record is the value of a cell.
type record struct {
	// Holder is the token of the keeper that holds the cell, or empty if it was
	// released. Owner says for people who that is.
	Holder string `json:"holder,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Limit is the first tick that is not granted to anybody yet. Until is the same
	// for people.
	Limit uint64 `json:"limit"`
	Until string `json:"until,omitempty"`
	// Window is the holder's, in ticks.
	Window uint64 `json:"window"`
	// Write is drawn anew for each write, so that its writer knows it again, and a
	// copy of the writer's memory does not.
	Write string `json:"write"`
	// Layout is that of all IDs of the fleet.
	Layout string `json:"layout"`
}

// recordHeader begins the text of a record, and names its format.
const recordHeader = "tickflake1 "

// encode returns the text of r: the header, a CRC-32 of the rest in hexadecimal,
// and a JSON object.
func (r record) encode() []byte {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers always can be
	}
	return fmt.Appendf(nil, "%s%08x %s", recordHeader, crc32.ChecksumIEEE(body), body)
}

// decode reads the record of a cell. The error is a [*RecordError].
func decode(cell Cell) (record, error) {
	fail := func(format string, args ...any) (record, error) {
		return record{}, &RecordError{Node: cell.Node, Problem: fmt.Sprintf(format, args...)}
	}
	text := string(cell.Value)
	if text == "" {
		return fail("it is empty")
	}
	rest, ok := strings.CutPrefix(text, recordHeader)
	if !ok {
		return fail("it begins with %q, not %q: it is none of ours, or of a later version", text[:min(len(text), len(recordHeader))], recordHeader)
	}
	sum, body, ok := strings.Cut(rest, " ")
	if !ok {
		return fail("it is cut short")
	}
	if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))); sum != want {
		return fail("its checksum is %.8q, and that of its text %s: it was damaged or edited", sum, want)
	}
	var r record
	if err := unmarshal([]byte(body), &r); err != nil {
		return record{}, &RecordError{Node: cell.Node, Problem: "it is no JSON object of a cell", Err: err}
	}
	r.Window = min(r.Window, 1<<40) // more is nobody's, and could overflow
	return r, nil
}

// unmarshal is json.Unmarshal but in the simulation of a fleet, which does little
// else.
var unmarshal = func(body []byte, r *record) error { return json.Unmarshal(body, r) }

// fits returns a [*LayoutMismatchError] if IDs of the record's layout could be the
// same as IDs of layout, for other slots.
func (r record) fits(node int64, layout snowflake.Layout, spec string) error {
	if r.Layout == spec {
		return nil
	}
	theirs, err := snowflake.ParseLayout(r.Layout)
	if err != nil {
		return &RecordError{Node: node, Problem: fmt.Sprintf("its layout is %.200q", r.Layout), Err: err}
	}
	if theirs.NodeBits == layout.NodeBits && theirs.SequenceBits == layout.SequenceBits && theirs.Order == layout.Order &&
		theirs.Tick == layout.Tick && theirs.Epoch.Equal(layout.Epoch) {
		return nil // parts with other names, or a time field that was widened
	}
	return &LayoutMismatchError{Node: node, Ours: layout, Theirs: theirs}
}
