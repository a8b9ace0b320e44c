package segment

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/cell"
)

// base is a record of 100 numbers, from 10 on by 5, of which 40 are granted.
func base() cell.Sequence {
	return cell.Sequence{
		Format: cell.Format, ID: "a", Creation: 2, Mode: "segmented", Start: 10, Stride: 5, Offset: 0, Max: 509, MinStep: 10, MaxStep: 20,
		Next: 40, From: 30, Most: 40, Writes: 4, Write: "w4",
	}
}

func with(change func(*cell.Sequence)) cell.Sequence {
	r := base()
	change(&r)
	return r
}

func TestDecide(t *testing.T) {
	seen := func(top uint64) Seen { r := base(); return Seen{Sequence: &r, Top: top} }
	own := []Range{{30, 40}}
	exported := with(func(r *cell.Sequence) { r.Writes, r.Write, r.Move = 5, "x", &cell.Move{Export: "e", To: "new"} })
	exported.From = exported.Next
	pending := []Pending{{Name: "p", Range: Range{40, 50}, Upto: 7}}
	tests := []struct {
		name  string
		state State
		cell  Cell
		kind  Kind
		check func(t *testing.T, d Decision)
	}{
		{"nothing is wanted", State{Seen: seen(40)}, Cell{9, base()}, Nothing, nil},
		{"a grant begins at the next index", State{Want: 20, Seen: seen(40)}, Cell{9, base()}, Grant, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{40, 60}, d.Range)
			assert.Equal(t, []uint64{40, 60, 60, 5}, []uint64{d.Record.From, d.Record.Next, d.Record.Most, d.Record.Writes})
			assert.EqualValues(t, 9, d.Version)
		}},
		{"a grant after a give-back keeps the most", State{Want: 5, Seen: seen(0)}, Cell{9, with(func(r *cell.Sequence) { r.Most = 90 })}, Grant, func(t *testing.T, d Decision) {
			assert.Equal(t, []uint64{45, 90}, []uint64{d.Record.Next, d.Record.Most})
		}},
		{"a grant ends at the maximum", State{Want: 80, Need: 60, Seen: seen(40)}, Cell{9, base()}, Grant, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{40, 100}, d.Range)
		}},
		{"too few are left", State{Want: 80, Need: 61, Seen: seen(40)}, Cell{9, base()}, Exhausted, nil},
		{"own numbers count if they adjoin", State{Want: 80, Need: 61, Room: 1, Owned: own, Seen: seen(40)}, Cell{9, base()}, Grant, nil},
		{"and are not granted again", State{Want: 30, Need: 30, Room: 8, Owned: own, Seen: seen(40)}, Cell{9, base()}, Grant, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{40, 62}, d.Range)
		}},
		{"and else not", State{Want: 80, Need: 61, Room: 1, Owned: []Range{{20, 30}}, Seen: seen(40)}, Cell{9, base()}, Exhausted, nil},
		{"an exported cell grants nothing", State{Want: 5, Seen: seen(40)}, Cell{9, exported}, Exported, nil},
		{"and takes nothing back", State{Closing: true, Used: 32, Owned: own, Seen: seen(40)}, Cell{9, exported}, Nothing, nil},
		{"a mark keeps the export", State{Want: 5, Seen: seen(90)}, Cell{9, with(func(r *cell.Sequence) { r.Writes, r.Move = 3, exported.Move })}, Mark, func(t *testing.T, d Decision) {
			assert.True(t, d.Record.Move.Exported())
		}},
		{"none is left", State{Want: 1, Room: 9, Owned: []Range{{80, 100}}, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Next, r.Most = 100, 100 })}, Exhausted, nil},

		{"a write has landed", State{Want: 5, Seen: seen(40), Pending: pending}, Cell{10, with(func(r *cell.Sequence) { r.From, r.Next, r.Most, r.Writes, r.Write = 40, 50, 50, 5, "p" })}, Adopt, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{40, 50}, d.Range)
			assert.EqualValues(t, 7, d.Upto)
		}},
		{"a give-back has landed", State{Closing: true, Seen: seen(40), Owned: own, Used: 32, Pending: []Pending{{Name: "p", Range: Range{32, 40}}}},
			Cell{10, with(func(r *cell.Sequence) { r.From, r.Next, r.Writes, r.Write = 32, 32, 5, "p" })}, GivenBack, func(t *testing.T, d Decision) {
				assert.Equal(t, Range{32, 40}, d.Range)
			}},
		{"a give-back has landed, and others were granted it", State{Closing: true, Used: 32, Owned: own, Seen: seen(40), Pending: []Pending{{Name: "p", Range: Range{32, 40}}}},
			Cell{11, with(func(r *cell.Sequence) { r.From, r.Next, r.Writes, r.Write = 32, 37, 6, "other" })}, Nothing, nil},
		{"and the last of them gave the rest back", State{Closing: true, Used: 32, Owned: own, Seen: seen(40), Pending: []Pending{{Name: "p", Range: Range{32, 40}}}},
			Cell{12, with(func(r *cell.Sequence) { r.From, r.Next, r.Most, r.Writes, r.Write = 40, 40, 60, 7, "other" })}, Nothing, nil},
		{"a write came first, and the give-back cannot have landed", State{Closing: true, Used: 32, Owned: own, Seen: seen(40), Pending: []Pending{{Name: "p", Range: Range{32, 40}}}},
			Cell{10, with(func(r *cell.Sequence) { r.From, r.Next, r.Writes, r.Write = 40, 40, 5, "set" })}, GiveBack, nil},

		{"a give-back has not landed so far", State{Closing: true, Seen: seen(40), Owned: own, Used: 32, Pending: []Pending{{Name: "p", Range: Range{32, 40}}}},
			Cell{9, base()}, GiveBack, nil},
		{"the mark met the writes of others", State{Want: 5, Seen: seen(40), Proof: true}, Cell{11, with(func(r *cell.Sequence) { r.From, r.Next, r.Most, r.Writes, r.Write = 50, 60, 60, 6, "theirs" })}, Mark, func(t *testing.T, d Decision) {
			assert.Equal(t, []uint64{60, 60}, []uint64{d.Record.Next, d.Record.Most})
		}},
		{"the cell was marked, and next raised to the end of our range", State{Closing: true, Seen: seen(40), Owned: own, Used: 32},
			Cell{11, with(func(r *cell.Sequence) { r.From, r.Creation, r.Writes, r.Write = 40, 3, 6, "theirs" })}, Raised, nil},

		{"the rest is given back", State{Closing: true, Used: 33, Owned: own, Seen: seen(40)}, Cell{9, base()}, GiveBack, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{33, 40}, d.Range)
			assert.Equal(t, []uint64{33, 33, 40}, []uint64{d.Record.From, d.Record.Next, d.Record.Most})
		}},
		{"two ranges that adjoin", State{Closing: true, Used: 25, Owned: []Range{{20, 30}, {30, 40}}, Seen: seen(40)}, Cell{9, base()}, GiveBack, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{25, 40}, d.Range)
		}},
		{"two ranges with another's between", State{Closing: true, Used: 12, Owned: []Range{{10, 20}, {30, 40}}, Seen: seen(40)}, Cell{9, base()}, GiveBack, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{30, 40}, d.Range)
		}},
		{"the window never came to the range", State{Closing: true, Used: 0, Owned: own, Seen: seen(40)}, Cell{9, base()}, GiveBack, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{30, 40}, d.Range)
		}},
		{"all are used", State{Closing: true, Used: 40, Owned: own, Seen: seen(40)}, Cell{9, base()}, Nothing, nil},
		{"a write is in flight", State{Closing: true, Used: 40, Owned: own, Seen: seen(40), Pending: pending}, Cell{9, base()}, GiveBack, func(t *testing.T, d Decision) {
			assert.Equal(t, Range{40, 40}, d.Range)
			assert.Equal(t, []uint64{40, 40, 40}, []uint64{d.Record.From, d.Record.Next, d.Record.Most})
		}},
		{"another process has written since the write in flight", State{Closing: true, Used: 40, Owned: own, Seen: seen(40), Pending: pending}, Cell{10, with(func(r *cell.Sequence) { r.From, r.Next, r.Most, r.Writes, r.Write = 40, 50, 50, 5, "x" })}, Nothing, nil},
		{"another process was granted more since", State{Closing: true, Used: 33, Owned: []Range{{20, 30}}, Seen: seen(30)}, Cell{9, base()}, Nothing, nil},

		{"the cell is gone", State{Want: 5, Seen: seen(40)}, Cell{}, Mark, func(t *testing.T, d Decision) {
			assert.Equal(t, "a", d.Record.ID)
			assert.Equal(t, []uint64{40, 40, 40}, []uint64{d.Record.From, d.Record.Next, d.Record.Most})
			assert.True(t, d.Record.Lost)
		}},
		{"fewer writes", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Writes = 3 })}, Mark, nil},
		{"fewer indexes", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Writes, r.Most, r.Next, r.From = 9, 39, 39, 39 })}, Mark, nil},
		{"as many writes, another name", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Write = "x" })}, Mark, nil},
		{"another's grant below our end", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Writes, r.Write, r.From, r.Next, r.Most = 8, "x", 39, 60, 60 })}, Mark, func(t *testing.T, d Decision) {
			assert.Equal(t, []uint64{60, 60}, []uint64{d.Record.Next, d.Record.Most})
			assert.EqualValues(t, 9, d.Record.Writes)
		}},
		{"another's grant above our end", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Writes, r.Write, r.From, r.Next, r.Most = 8, "x", 40, 60, 60 })}, Grant, nil},
		{"created anew in an emptied store", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.ID, r.Creation, r.Writes = "b", 1, 400 })}, Mark, nil},
		{"and its numbers count, by its own stride", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.ID, r.Creation, r.Stride = "b", 1, 50 })}, Mark, func(t *testing.T, d Decision) {
			assert.Equal(t, []uint64{1961, 391, 391}, []uint64{d.Record.Before, d.Record.Next, d.Record.Most}) // 10 + 39 * 50 was granted
		}},
		{"another one of the same creation", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.ID, r.Writes = "b", 400 })}, Mark, nil},
		{"deleted and created anew", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.ID, r.Creation, r.Writes = "b", 3, 6 })}, Deleted, nil},
		{"deleted", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Deleted, r.Writes, r.Write, r.From = true, 5, "x", 40 })}, Deleted, nil},
		{"marked", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Lost, r.Writes, r.Write, r.From = true, 5, "x", 40 })}, Marked, nil},
		{"marked, under another id", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.ID, r.Lost, r.Writes, r.Write, r.From = "b", true, 5, "x", 40 })}, Marked, nil},
		{"a mark keeps the maximum and the steps of the last Set", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) {
			r.Max, r.MinStep, r.MaxStep, r.Writes, r.Write, r.From, r.Next, r.Most = 600, 3, 7, 6, "x", 35, 39, 70
		})}, Mark, func(t *testing.T, d Decision) {
			assert.Equal(t, []int64{600, 3, 7}, []int64{d.Record.Max, d.Record.MinStep, d.Record.MaxStep})
		}},
		{"and no maximum below a number that was granted", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) {
			r.Max, r.Writes, r.Write, r.From, r.Next, r.Most = 150, 6, "x", 20, 28, 38
		})}, Mark, func(t *testing.T, d Decision) {
			assert.EqualValues(t, 10+39*5, d.Record.Max)
		}},
		{"a mark in flight is no give-back", State{Want: 5, Seen: seen(50), Proof: true, Pending: []Pending{{Name: "m"}}}, Cell{12, with(func(r *cell.Sequence) {
			r.Writes, r.Write = 7, "x"
		})}, Mark, func(t *testing.T, d Decision) {
			assert.EqualValues(t, 50, d.Record.Most)
		}},
		{"marked too low", State{Want: 5, Seen: seen(40)}, Cell{9, with(func(r *cell.Sequence) { r.Lost, r.Writes, r.Write, r.Most, r.Next, r.From = true, 5, "x", 39, 39, 39 })}, Mark, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.state.Name = "new"
			d := Decide(tt.state, tt.cell)
			assert.Equal(t, tt.kind, d.Kind)
			if d.Kind.Writes() {
				assert.Equal(t, "new", d.Record.Write)
				assert.Equal(t, tt.cell.Record.Names(), d.Record.Last)
				_, err := cell.DecodeSequence(d.Record.Encode())
				assert.NoError(t, err, "every record that is written can be read")
			}
			if tt.check != nil {
				tt.check(t, d)
			}
		})
	}
}
