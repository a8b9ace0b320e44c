package cell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// FleetKey is the key of the fleet's cell, which had the layout alone before.
const FleetKey = "layout"

// Fleet is the value of the fleet's cell: what a store is for. Every claim reads it.
type Fleet struct {
	Format int    `json:"format"`
	Layout string `json:"layout"`
	// First is the node number that the first process of the store takes, if all are free.
	First int64 `json:"first,omitempty"`
	// Nodes are the node numbers of this store. In the text it is left out for all of the layout, and,
	// if numbers have left, for none: the fleet has ended.
	Nodes Nodes `json:"nodes,omitzero"`
	// Floor is the first tick that any claim may begin at. It never changes.
	Floor uint64 `json:"floor,omitempty"`
	// Gone are the numbers that have left for good, the latest last.
	Gone []Gone `json:"gone,omitempty"`
}

// Nodes are the node numbers from From up to, but not including, To.
type Nodes struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Has reports whether a number is among n.
func (n Nodes) Has(node int64) bool { return n.From <= node && node < n.To }

// Gone are numbers that belong to another store, with its name for people. The name is empty if the cell
// has no room for it.
type Gone struct {
	Nodes
	Store string `json:"store,omitempty"`
}

// AllNodes are the node numbers of a layout that have keys.
func AllNodes(l snowflake.Layout) Nodes { return Nodes{0, min(int64(1)<<l.NodeBits, MaxNodes)} }

// Encode returns the value of the cell. It leaves out the names of the stores that numbers left to, but the
// latest, as far as the value would be longer than a store accepts.
func (f Fleet) Encode() []byte {
	f.Format = Format
	if layout, err := ParseLayout(f.Layout); err == nil && f.Nodes == AllNodes(layout) {
		f.Nodes = Nodes{}
	}
	text := EncodeJSON(f)
	f.Gone = slices.Clone(f.Gone)
	for i := 0; i < len(f.Gone)-1 && len(text) > stores.MaxValue; i++ {
		f.Gone[i].Store = ""
		text = EncodeJSON(f)
	}
	return text
}

// DecodeFleet reads the value of the cell of [FleetKey]. The error wraps [stores.ErrDamaged].
func DecodeFleet(value []byte) (Fleet, error) {
	var f Fleet
	if err := DecodeJSON(value, Format, &f); err != nil {
		return Fleet{}, err
	}
	layout, err := ParseLayout(f.Layout)
	if err != nil {
		return Fleet{}, err
	}
	all := AllNodes(layout)
	if f.Nodes == (Nodes{}) && len(f.Gone) == 0 {
		f.Nodes = all
	}
	for _, n := range append([]Gone{{Nodes: f.Nodes}}, f.Gone...) {
		if (n.From < 0 || n.From >= n.To || n.To > all.To) && n.Nodes != (Nodes{}) {
			return Fleet{}, Damaged("it has the node numbers from %d to %d, and its layout has %d; it was edited by hand", n.From, n.To-1, all.To)
		}
	}
	switch {
	case f.First < 0 || f.First > layout.MaxNode():
		return Fleet{}, Damaged("its first node number is %d", f.First)
	case f.Floor >= 1<<layout.TimeBits:
		return Fleet{}, Damaged("its floor is tick %d, and the time of its layout ends at tick %d; it was edited by hand", f.Floor, uint64(1)<<layout.TimeBits)
	}
	return f, nil
}

// MaxTo is the length in bytes, in JSON, of the longest name of a store in a cell.
const MaxTo = 300

// CheckTo returns an error unless to can name the store that numbers leave to. All processes that use
// the old store show the name in an error, so it is one line, and nothing in it can be a password.
func CheckTo(to string) error {
	n := len(EncodeJSON(to)) - len(`""`)
	switch {
	case to == "" || n > MaxTo:
		return fmt.Errorf("name of the new store of %d bytes: want 1 to %d", n, MaxTo)
	case strings.ContainsFunc(to, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		return errors.New("name of the new store is not one line of printable characters")
	case strings.ContainsAny(to, "@=?#%") || strings.Contains(strings.ToLower(to), "passw"):
		return errors.New("name of the new store may show a password: want a URL without user, password and options, or a name without @ = ? # %")
	}
	return nil
}

// Where returns the name of a store that cells were moved to, for an error or a list. A cell that was edited
// by hand may hold any text.
func Where(to string) string {
	if CheckTo(to) != nil {
		return "another store"
	}
	return to
}

// parsed is a text of a layout with its layout.
type parsed struct {
	text   string
	layout snowflake.Layout
}

// last is what ParseLayout has parsed last: the cells of a fleet have one text.
var last atomic.Pointer[parsed]

// ParseLayout returns the layout in a cell. Its parts are shared, and must not be changed. The error
// wraps [stores.ErrDamaged]. It may be called by several goroutines at once.
func ParseLayout(text string) (snowflake.Layout, error) {
	if p := last.Load(); p != nil && p.text == text {
		return p.layout, nil
	}
	layout, err := snowflake.ParseLayout(text)
	if err != nil {
		return layout, fmt.Errorf("%w: its layout is %.200q: %w", stores.ErrDamaged, text, err)
	}
	last.Store(&parsed{text, layout})
	return layout, nil
}
