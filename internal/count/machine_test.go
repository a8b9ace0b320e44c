package count

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/cell"
)

// base is a cell of 100 numbers, from 10 on by 5, of which 40 are granted. It was written four times.
func base() Cell {
	return Cell{9, cell.Sequence{
		Format: cell.Format, ID: "a", Creation: 2, Mode: "segmented", Start: 10, Stride: 5, Offset: 0, Max: 509, MinStep: 10, MaxStep: 20,
		Next: 40, From: 30, Most: 40, Writes: 4, Write: "w4", Last: []string{"w3", "w2", "w1"},
	}}
}

// with is the base after a write of another process that changed it.
func with(change func(*cell.Sequence)) Cell {
	c := base()
	r := &c.Record
	c.Version, r.Writes, r.Write, r.Last, r.From = 10, 5, "x", r.Names(), r.Next
	change(r)
	return c
}

// far is the base after so many writes that it keeps no name of the base.
func far(change func(*cell.Sequence)) Cell {
	return with(func(r *cell.Sequence) {
		r.From, r.Next, r.Most, r.Writes, r.Write, r.Last = 90, 95, 95, 14, "x", []string{"x8", "x7", "x6", "x5", "x4", "x3", "x2", "x1"}
		change(r)
	})
}

func none(*cell.Sequence) {}

// TestMachine reads cells one after the other, and compares what has happened, and the next
// operation.
func TestMachine(t *testing.T) {
	own := []Range{{30, 40}}
	grant := []Pending{{Name: "p", Range: Range{40, 50}, Upto: 7}}
	back := []Pending{{Name: "p", Range: Range{32, 40}, Back: true}}
	granted := func(r *cell.Sequence) { r.From, r.Next, r.Most, r.Write = 40, 50, 50, "p" }
	exported := with(func(r *cell.Sequence) { r.Move = &cell.Move{Export: "e", To: "new"} })
	gone, want, closing := Cell{}, Input{Want: 5}, Input{Closing: true, Used: 32}
	type check = func(t *testing.T, op Op)
	tests := []struct {
		name  string
		m     Machine
		in    Input
		reads []Cell
		says  string // the kinds of the events, and kind and reason of the next operation
		check check
	}{
		{"nothing is wanted", Machine{}, Input{}, nil, "[] 0 0", nil},
		{"a grant begins at the next index", Machine{}, Input{Want: 20, Arrived: 3}, nil, "[] 2 5", func(t *testing.T, op Op) {
			assert.Equal(t, Op{Kind: Swap, Why: Refill, Version: 9, Range: Range{40, 60}, Upto: 3, Record: op.Record}, op)
			assert.Equal(t, []uint64{40, 60, 60, 5}, []uint64{op.Record.From, op.Record.Next, op.Record.Most, op.Record.Writes})
		}},
		{"a grant after a give-back keeps the most", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Most = 90 })}, "[] 2 5", func(t *testing.T, op Op) {
			assert.Equal(t, []uint64{45, 90}, []uint64{op.Record.Next, op.Record.Most})
		}},
		{"a grant ends at the maximum", Machine{}, Input{Want: 80, Need: 60}, nil, "[] 2 5", func(t *testing.T, op Op) { assert.Equal(t, Range{40, 100}, op.Range) }},
		{"too few are left, but the maximum may have been raised", Machine{}, Input{Want: 80, Need: 61}, nil, "[] 1 3", nil},
		{"too few are left", Machine{}, Input{Want: 80, Need: 61}, []Cell{base()}, "[] 0 1", nil},
		{"own numbers count if they adjoin", Machine{owned: own}, Input{Want: 80, Need: 61, Used: 39}, []Cell{base()}, "[] 2 5", nil},
		{"and are not granted again", Machine{owned: own}, Input{Want: 30, Need: 30, Used: 32}, nil, "[] 2 5", func(t *testing.T, op Op) { assert.Equal(t, Range{40, 62}, op.Range) }},
		{"if they are enough", Machine{owned: own}, Input{Want: 30, Need: 8, Used: 32}, nil, "[] 2 5", func(t *testing.T, op Op) { assert.Equal(t, Range{40, 70}, op.Range) }},
		{"and else not", Machine{owned: []Range{{20, 30}}}, Input{Want: 80, Need: 61, Used: 29}, []Cell{base()}, "[] 0 1", nil},
		{"none is left", Machine{owned: []Range{{80, 100}}}, Input{Want: 1, Used: 91}, []Cell{with(func(r *cell.Sequence) { r.Next, r.From, r.Most = 100, 100, 100 })}, "[] 0 1", nil},
		{"an exported cell grants nothing", Machine{}, want, []Cell{exported}, "[] 0 2", nil},
		{"and is read for each call", Machine{known: exported}, want, nil, "[] 1 3", nil},
		{"and takes nothing back", Machine{owned: own}, closing, []Cell{exported}, "[] 0 0", nil},
		{"and keeps it in a mark", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Writes, r.Move = 3, exported.Record.Move })}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.True(t, op.Record.Move.Exported())
		}},

		{"a write has landed", Machine{pending: grant}, want, []Cell{with(granted)}, "[0] 2 5", func(t *testing.T, op Op) { assert.Equal(t, Range{50, 55}, op.Range) }},
		{"a write has landed, and another process wrote since", Machine{pending: grant}, want, []Cell{with(func(r *cell.Sequence) {
			r.From, r.Next, r.Most, r.Writes, r.Last = 50, 60, 60, 6, []string{"p", "w4"}
		})}, "[0] 2 5", func(t *testing.T, op Op) { assert.Equal(t, Range{60, 65}, op.Range) }},
		{"a give-back has landed", Machine{owned: own, pending: back}, closing, []Cell{with(func(r *cell.Sequence) { r.From, r.Next, r.Write = 32, 32, "p" })}, "[1] 0 0", nil},
		{"a give-back has landed, and others were granted it", Machine{owned: own, top: 40, pending: back}, closing, []Cell{with(func(r *cell.Sequence) {
			r.From, r.Next, r.Writes, r.Last = 32, 37, 6, []string{"p", "w4"}
		})}, "[1] 0 0", nil},
		{"a give-back may have landed", Machine{owned: own, top: 40, pending: back}, closing, []Cell{far(func(r *cell.Sequence) { r.From, r.Next = 38, 40 })}, "[4] 0 0", nil},
		{"a write came first, and the give-back cannot have landed", Machine{owned: own, pending: back}, closing, []Cell{with(none)}, "[] 2 6", nil},
		{"a give-back has not landed so far", Machine{owned: own, pending: back}, closing, []Cell{base()}, "[] 2 6", nil},

		{"the rest is given back", Machine{owned: own}, closing, nil, "[] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, Range{32, 40}, op.Range)
			assert.Equal(t, []uint64{32, 32, 40}, []uint64{op.Record.From, op.Record.Next, op.Record.Most})
		}},
		{"two ranges with another's between", Machine{owned: []Range{{10, 20}, {30, 40}}}, Input{Closing: true, Used: 12}, nil, "[] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, Range{30, 40}, op.Range)
		}},
		{"all are used", Machine{owned: own}, Input{Closing: true, Used: 40}, nil, "[] 0 0", nil},
		{"a write is in flight", Machine{owned: own, pending: grant}, Input{Closing: true, Used: 40}, []Cell{base()}, "[] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, Range{40, 40}, op.Range)
			assert.Equal(t, []uint64{40, 40, 40}, []uint64{op.Record.From, op.Record.Next, op.Record.Most})
		}},
		{"and nothing is owned", Machine{pending: grant}, closing, []Cell{base()}, "[] 2 6", nil},
		{"another process has written since the write in flight", Machine{pending: grant}, closing, []Cell{with(none)}, "[] 0 0", nil},
		{"another process was granted more since", Machine{owned: []Range{{20, 30}}}, Input{Closing: true, Used: 25}, nil, "[] 0 0", nil},

		{"an older cell is a suspicion", Machine{}, want, []Cell{gone}, "[2] 1 4", nil},
		{"that ends with our own write", Machine{owned: own}, want, []Cell{gone, base()}, "[2 3] 2 5", nil},
		{"or with one after it", Machine{owned: own}, want, []Cell{gone, with(none)}, "[2 3] 2 5", nil},
		{"or with a write of unknown outcome", Machine{pending: grant}, want, []Cell{gone, with(granted)}, "[2 3 0] 2 5", nil},
		{"or with one that may be after it", Machine{owned: own}, want, []Cell{gone, far(none)}, "[2 4] 2 5", nil},
		{"but not after one that is not", Machine{owned: own}, want, []Cell{with(func(r *cell.Sequence) { r.Last[0] = "x4" }), far(none)}, "[2] 2 7", nil},
		{"nor with our own write after that", Machine{owned: own}, want, []Cell{with(func(r *cell.Sequence) { r.Last[0] = "x4" }), base()}, "[2] 2 7", nil},
		{"a second read confirms it", Machine{}, want, []Cell{gone, gone}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.Equal(t, "a", op.Record.ID)
			assert.Equal(t, []uint64{40, 40, 40, 5, 3}, []uint64{op.Record.From, op.Record.Next, op.Record.Most, op.Record.Writes, op.Record.Creation})
			assert.True(t, op.Record.Lost)
			assert.Empty(t, op.Record.Last)
		}},
		{"a mark raises next to all that was granted", Machine{top: 50}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Writes, r.Most = 3, 60 })}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.EqualValues(t, 60, op.Record.Next)
		}},
		{"a mark keeps the maximum and the steps of the last Set", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) {
			r.Last[0], r.Max, r.MinStep, r.MaxStep = "x4", 600, 3, 7
		})}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.Equal(t, []int64{600, 3, 7}, []int64{op.Record.Max, op.Record.MinStep, op.Record.MaxStep})
		}},
		{"but not of another write with its number", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Writes, r.Last, r.Max = 4, r.Last[1:], 600 })}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.EqualValues(t, 509, op.Record.Max)
		}},
		{"and no maximum below a number that was granted", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Last[0], r.Max, r.Next, r.From, r.Most = "x4", 150, 20, 20, 28 })}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.EqualValues(t, 10+39*5, op.Record.Max)
		}},
		{"a mark over another sequence", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.ID, r.Stride, r.Most, r.Max = "b", 50, 40, 1e6 })}, "[2] 2 7", func(t *testing.T, op Op) {
			assert.Equal(t, []uint64{10 + 39*50 + 1, 390 + 1}, []uint64{op.Record.Before, op.Record.Most})
		}},
		{"a mark as high as the last one of unknown outcome", Machine{back: backOf(90)}, want, []Cell{with(func(r *cell.Sequence) { r.Last[0] = "x4" })}, "[] 2 7", func(t *testing.T, op Op) {
			assert.EqualValues(t, 90, op.Record.Most)
		}},
		{"as many writes, and another one last", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Writes, r.Last = 4, r.Last[1:] })}, "[2] 1 4", nil},
		{"as many writes as the cell has names, and none is ours", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.Writes = 12 })}, "[2] 1 4", nil},
		{"one more", Machine{owned: own, top: 40}, want, []Cell{far(func(r *cell.Sequence) { r.Writes = 13 })}, "[] 2 5", nil},
		{"less was granted", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.Most, r.Next, r.From = 39, 39, 39 })}, "[2] 1 4", nil},
		{"a later grant begins below the end of ours", Machine{top: 40}, want, []Cell{far(func(r *cell.Sequence) { r.From = 39 })}, "[2] 1 4", nil},
		{"fewer creations", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.Creation = 1 })}, "[2] 1 4", nil},
		{"created anew without a deletion", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Before = "b", 10+39*5+1 })}, "[2] 1 4", nil},
		{"deleted and created anew", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Creation, r.Writes, r.Before = "b", 3, 1, 10+39*5+1 })}, "[8] 1 3", nil},
		{"deleted with less than was granted, and created anew", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Creation, r.Before = "b", 3, 10+39*5 })}, "[2] 1 4", nil},
		{"deleted with less than a grant of ours, and created anew", Machine{top: 41}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Creation, r.Before = "b", 3, 10+40*5 })}, "[2] 1 4", nil},
		{"deleted", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Deleted = true })}, "[8] 1 3", nil},
		{"marked", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Lost, r.Last[0] = true, "x4" })}, "[6] 1 3", nil},
		{"marked, under another id", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.ID, r.Creation, r.Lost, r.Before = "b", 3, true, 10+39*5+1 })}, "[6] 1 3", nil},
		{"marked too low", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Lost, r.Last[0], r.Most, r.Next, r.From = true, "x4", 39, 39, 39 })}, "[2] 1 4", nil},
		{"marked, and next raised to the end of our range", Machine{owned: own, top: 40}, want, []Cell{with(func(r *cell.Sequence) { r.Creation, r.Last[0] = 3, "x4" })}, "[7] 2 5", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, kinds := tt.m, []EventKind{}
			if m.known.Version == 0 {
				m.known = base()
			}
			m.sealed, m.used = tt.in.Closing, tt.in.Used
			tt.in.Name = "new"
			for _, c := range tt.reads {
				for _, e := range m.Done(tt.in, Op{Kind: Read}, Result{Cell: c}) {
					kinds = append(kinds, e.Kind)
				}
			}
			op := m.Next(tt.in)
			assert.Equal(t, tt.says, fmt.Sprintf("%d %d %d", kinds, op.Kind, op.Why))
			if op.Kind == Swap {
				assert.Equal(t, "new", op.Record.Write)
				_, err := cell.DecodeSequence(op.Record.Encode())
				assert.NoError(t, err, "every cell that is written can be read")
			}
			if tt.check != nil {
				tt.check(t, op)
			}
		})
	}
}

// backOf is a suspicion after a mark of unknown outcome.
func backOf(most uint64) back { return back{suspect: true, most: most} }

// TestOutcomes has the outcome of the next operation: what has happened, what the process owns and
// knows, and the writes of unknown outcome.
func TestOutcomes(t *testing.T) {
	own := []Range{{30, 40}}
	want, closing := Input{Name: "new", Want: 5, Arrived: 3}, Input{Name: "new", Closing: true, Used: 32}
	done, failed := Result{Version: 10}, Result{Status: Failed}
	found := base()
	mark := Machine{owned: own, top: 90, back: back{suspect: true, found: &found}}
	var many []Pending
	for i := range maxPending {
		many = append(many, Pending{Name: fmt.Sprint(i), Range: Range{40, 41}})
	}
	tests := []struct {
		name     string
		m        Machine
		in       Input
		restored bool // while the operation was in flight
		result   Result
		events   []Event // without their cells
		owned    []Range
		version  uint64 // that is known
		pending  []Pending
	}{
		{"a grant", Machine{}, want, false, done, []Event{{Range: Range{40, 45}, Upto: 3}}, []Range{{40, 45}}, 10, nil},
		{"one that adjoins", Machine{owned: own}, want, false, done, []Event{{Range: Range{40, 45}, Upto: 3}}, []Range{{30, 45}}, 10, nil},
		{"one that does not", Machine{owned: []Range{{20, 30}}}, want, false, done, []Event{{Range: Range{40, 45}, Upto: 3}}, []Range{{20, 30}, {40, 45}}, 10, nil},
		{"in ordered mode", Machine{ordered: true}, want, false, done, []Event{{Range: Range{40, 45}, Upto: 3}}, nil, 10, nil},
		{"an unknown one", Machine{owned: own}, want, false, failed, nil, own, 9, []Pending{{Name: "new", Range: Range{40, 45}, Upto: 3}}},
		{"of many", Machine{pending: many}, want, false, failed, nil, nil, 9, append(many[1:maxPending:maxPending], Pending{Name: "new", Range: Range{40, 45}, Upto: 3})},
		{"a failed read", Machine{doubt: true, owned: own}, want, false, failed, nil, own, 9, nil},
		{"a give-back", Machine{owned: own}, closing, false, done, []Event{{Kind: GivenBack, Range: Range{32, 40}}}, []Range{{30, 32}}, 10, nil},
		{"of a whole range", Machine{owned: []Range{{10, 20}, {32, 40}}}, closing, false, done, []Event{{Kind: GivenBack, Range: Range{32, 40}}}, []Range{{10, 20}}, 10, nil},
		{"an unknown one", Machine{owned: own}, closing, false, failed, nil, own, 9, []Pending{{Name: "new", Range: Range{32, 40}, Back: true}}},
		{"a mark", mark, want, false, done, []Event{{Kind: WentBack, Lost: 10}}, nil, 10, nil},
		{"an unknown one", mark, want, false, failed, nil, own, 9, nil},
		{"a grant to a copy", Machine{owned: own}, want, true, done, []Event{{Kind: Forgot, Range: Range{40, 45}}}, nil, 10, nil},
		{"an unknown one", Machine{owned: own}, want, true, failed, []Event{{Kind: Forgot}}, nil, 9, nil},
		{"a give-back of a copy", Machine{owned: own}, closing, true, done, []Event{{Kind: Forgot}}, nil, 10, nil},
		{"a read of a copy", Machine{owned: own, doubt: true}, want, true, done, []Event{{Kind: Forgot}}, nil, 9, nil},
	}
	for i, tt := range tests {
		m := tt.m
		m.known, m.sealed, m.used = base(), tt.in.Closing, tt.in.Used
		op := m.Next(tt.in)
		tt.in.Restored = tt.restored
		events := m.Done(tt.in, op, tt.result)
		for i := range events {
			events[i].Cell = Cell{}
		}
		assert.Equal(t, tt.events, events, "%d: %s", i, tt.name)
		assert.Equal(t, tt.owned, m.owned, "%d: %s", i, tt.name)
		assert.Equal(t, tt.version, m.known.Version, "%d: %s", i, tt.name)
		assert.Equal(t, tt.pending, m.pending, "%d: %s", i, tt.name)
		assert.Equal(t, tt.result.Status != OK || tt.restored || op.Why == Mark, m.doubt, "%d: %s", i, tt.name)
	}

	m := mark
	m.known = base()
	m.Done(want, m.Next(want), failed)
	assert.EqualValues(t, 90, m.back.most, "the next mark is as high")
	m.suspect(Cell{}, true)
	m.suspect(Cell{}, false)
	assert.True(t, m.back.proof, "no later read takes it back")

	m = Machine{known: base()}
	m.Done(want, Op{Kind: Read}, Result{Cell: with(func(r *cell.Sequence) { r.Deleted = true })})
	assert.EqualValues(t, 10, m.known.Version, "the cell is known")
	m.Done(want, Op{Kind: Read}, Result{Cell: with(func(r *cell.Sequence) { r.ID, r.Creation = "b", 3 })})
	assert.Equal(t, "a", m.known.Record.ID, "that of another sequence is not")
}

// TestUnused: how many numbers are owned, left, and may be owned besides.
func TestUnused(t *testing.T) {
	m := Machine{known: base(), owned: []Range{{10, 20}, {30, 40}}, pending: []Pending{{Range: Range{20, 40}, Back: true}, {Range: Range{40, 50}}, {Range: Range{40, 45}}}}
	assert.EqualValues(t, 15, m.Unused(15))
	assert.EqualValues(t, 65, m.Left(35))
	assert.EqualValues(t, 10, m.Unknown())
	m.trim(20)
	assert.Equal(t, []Range{{30, 40}}, m.owned)
}
