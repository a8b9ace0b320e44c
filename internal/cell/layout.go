package cell

import (
	"fmt"
	"sync/atomic"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// LayoutKey is the key of the cell that holds the fleet's layout.
const LayoutKey = "layout"

// Layout is the value of the cell of [LayoutKey].
type Layout struct {
	Format int    `json:"format"`
	Layout string `json:"layout"`
	// First is the node number that the first process of the store takes, if all are free.
	First int64 `json:"first,omitempty"`
	Move  *Move `json:"move,omitempty"`
}

// Encode returns the value of the cell.
func (l Layout) Encode() []byte {
	l.Format = Format
	return EncodeJSON(l)
}

// DecodeLayout reads the value of the cell of [LayoutKey]. The error wraps [stores.ErrDamaged].
func DecodeLayout(value []byte) (Layout, error) {
	var l Layout
	if err := DecodeJSON(value, Format, &l); err != nil {
		return Layout{}, err
	}
	layout, err := ParseLayout(l.Layout)
	if err != nil {
		return Layout{}, err
	}
	if layout.CheckNode(l.First) != nil {
		return Layout{}, Damaged("its first node number is %d", l.First)
	}
	return l, nil
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
