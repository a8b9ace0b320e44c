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

// TestMachine reads cells one after the other, and compares what has happened, and the next
// operation.
func TestMachine(t *testing.T) {
	own := []Range{{30, 40}}
	grant := []Pending{{Name: "p", Range: Range{40, 50}, Upto: 7}}
	gone, want, known := Cell{}, Input{Want: 5}, base()
	known.Record.Before = 1000
	later := with(func(r *cell.Sequence) { r.ID, r.Creation = "b", 5 })
	type check = func(t *testing.T, op Op)
	tests := []struct {
		name  string
		m     Machine
		in    Input
		reads []Cell
		says  string // the kinds of the events, and kind and reason of the next operation
		check check
	}{
		{"too few are left, but the maximum may have been raised", Machine{}, Input{Want: 80, Need: 61}, nil, "[] 1 2", nil},
		{"too few are left", Machine{}, Input{Want: 80, Need: 61}, []Cell{base()}, "[] 0 1", nil},
		{"own numbers count if they adjoin", Machine{owned: own}, Input{Want: 80, Need: 61, Used: 39}, []Cell{base()}, "[] 2 4", nil},
		{"and are not granted again", Machine{owned: own}, Input{Want: 30, Need: 30, Used: 32}, nil, "[] 2 4", func(t *testing.T, op Op) { assert.Equal(t, Range{40, 62}, op.Range) }},
		{"if they are enough", Machine{owned: own}, Input{Want: 30, Need: 8, Used: 32}, nil, "[] 2 4", func(t *testing.T, op Op) { assert.Equal(t, Range{40, 70}, op.Range) }},
		{"and else not", Machine{owned: []Range{{20, 30}}}, Input{Want: 80, Need: 61, Used: 29}, []Cell{base()}, "[] 0 1", nil},
		{"a write is in flight", Machine{owned: own, pending: grant}, Input{Closing: true, Used: 40}, []Cell{base()}, "[] 2 5", func(t *testing.T, op Op) {
			assert.Equal(t, Range{40, 40}, op.Range)
			assert.Equal(t, []uint64{40, 40, 40}, []uint64{op.Record.From, op.Record.Next, op.Record.Most})
		}},
		{"and nothing is owned", Machine{pending: grant}, Input{Closing: true, Used: 40}, []Cell{base()}, "[] 2 5", nil},
		{"another process has written since the write in flight", Machine{pending: grant}, Input{Closing: true, Used: 32}, []Cell{with(func(*cell.Sequence) {})}, "[] 0 0", nil},
		{"a mark keeps the maximum and the steps of the last Set", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) {
			r.Last[0], r.Max, r.MinStep, r.MaxStep = "x4", 600, 3, 7
		})}, "[2] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, []int64{600, 3, 7}, []int64{op.Record.Max, op.Record.MinStep, op.Record.MaxStep})
			assert.EqualValues(t, 3, op.Record.Creation, "who reads the cell after the next Set sees that there was a mark")
		}},
		{"but not of another write with its number", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Writes, r.Last, r.Max = 4, r.Last[1:], 600 })}, "[2] 2 6", func(t *testing.T, op Op) {
			assert.EqualValues(t, 509, op.Record.Max)
		}},
		{"and no maximum below a number that was granted", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.Last[0], r.Max, r.Next, r.From, r.Most = "x4", 150, 20, 20, 28 })}, "[2] 2 6", func(t *testing.T, op Op) {
			assert.EqualValues(t, 10+39*5, op.Record.Max)
		}},
		{"a mark over another sequence", Machine{}, want, []Cell{gone, with(func(r *cell.Sequence) { r.ID, r.Stride, r.Most, r.Max = "b", 50, 40, 1e6 })}, "[2] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, []uint64{10 + 39*50 + 1, 390 + 1}, []uint64{op.Record.Before, op.Record.Most})
		}},
		{"and over a later one, created by who did not know all that was granted", Machine{known: known}, want, []Cell{later, later}, "[2] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, []uint64{1000, 6}, []uint64{op.Record.Before, op.Record.Creation})
		}},
		{"a mark as high as the last one of unknown outcome", Machine{wentBack: backOf(90)}, want, []Cell{with(func(r *cell.Sequence) { r.Last[0] = "x4" })}, "[] 2 6", func(t *testing.T, op Op) {
			assert.Equal(t, []uint64{90, 10 + 89*5 + 1}, []uint64{op.Record.Most, op.Record.Before}, "who knows another sequence sees that it is covered")
		}},
		{"as many writes as the cell has names, and none is ours", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.Writes = 12 })}, "[2] 1 3", nil},
		{"one more", Machine{owned: own, top: 40}, want, []Cell{far(func(r *cell.Sequence) { r.Writes = 13 })}, "[] 2 4", nil},
		{"created anew without a deletion", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Before = "b", 10+39*5+1 })}, "[2] 1 3", nil},
		{"a suspicion ends with a write that may be after ours", Machine{owned: own}, want, []Cell{gone, far(func(*cell.Sequence) {})}, "[2 4] 2 4", nil},
		{"deleted and created anew", Machine{}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Creation, r.Writes, r.Before = "b", 3, 1, 10+39*5+1 })}, "[8] 1 2", nil},
		{"deleted with less than a grant of ours, and created anew", Machine{top: 41}, want, []Cell{far(func(r *cell.Sequence) { r.ID, r.Creation, r.Before = "b", 3, 10+40*5 })}, "[2] 1 3", nil},
		{"marked too low", Machine{}, want, []Cell{with(func(r *cell.Sequence) { r.Lost, r.Last[0], r.Most, r.Next, r.From = true, "x4", 39, 39, 39 })}, "[2] 1 3", nil},
		{"marked, and next raised to the end of our range", Machine{owned: own, top: 40}, want, []Cell{with(func(r *cell.Sequence) { r.Creation, r.Last[0] = 3, "x4" })}, "[7] 2 4", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, kinds := tt.m, []EventKind{}
			if m.known.Version == 0 {
				m.known = base()
			}
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
				assert.Greater(t, op.Record.Writes, m.known.Record.Writes)
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
func backOf(most uint64) wentBack { return wentBack{suspect: true, most: most} }

// TestOutcomes has the outcome of the next operation: what has happened, and what the process owns then.
func TestOutcomes(t *testing.T) {
	own := []Range{{30, 40}}
	want, closing := Input{Name: "new", Want: 5, Arrived: 3}, Input{Name: "new", Closing: true, Used: 32}
	done, failed := Result{Version: 10}, Result{Status: Failed}
	found := base()
	mark := Machine{owned: own, top: 90, wentBack: wentBack{suspect: true, found: &found}}
	for i, tt := range []struct {
		name     string
		m        Machine
		in       Input
		restored bool // while the operation was in flight
		result   Result
		event    Event // without its cell
		owned    []Range
	}{
		{"one that adjoins", Machine{owned: own}, want, false, done, Event{Range: Range{40, 45}, Upto: 3}, []Range{{30, 45}}},
		{"the first", Machine{}, want, false, done, Event{Range: Range{40, 45}, Upto: 3}, []Range{{40, 45}}},
		{"a suspicion ends", Machine{owned: own, wentBack: backOf(0)}, Input{Name: "new", Used: 32}, false, Result{Cell: base()}, Event{Kind: Trusted, Ranges: []Range{{32, 40}}}, own},
		{"one without numbers", Machine{wentBack: backOf(0)}, want, false, Result{Cell: base()}, Event{Kind: Trusted}, nil},
		{"a mark", mark, want, false, done, Event{Kind: WentBack, Lost: 10}, nil},
		{"a grant to a copy", Machine{owned: own}, want, true, done, Event{Kind: Forgot, Range: Range{40, 45}}, nil},
		{"an unknown one", Machine{owned: own}, want, true, failed, Event{Kind: Forgot}, nil},
		{"a give-back of the last range", Machine{owned: []Range{{10, 20}, {30, 40}}}, Input{Name: "new", Closing: true, Used: 15}, false, done, Event{Kind: GivenBack, Range: Range{30, 40}}, []Range{{10, 20}}},
		{"a give-back of a copy", Machine{owned: own}, closing, true, done, Event{Kind: Forgot}, nil},
	} {
		m := tt.m
		m.known = base()
		op := m.Next(tt.in)
		tt.in.Restored = tt.restored
		events := m.Done(tt.in, op, tt.result)
		if assert.Len(t, events, 1, "%d: %s", i, tt.name) {
			events[0].Cell = Cell{}
			assert.Equal(t, tt.event, events[0], "%d: %s", i, tt.name)
		}
		assert.Equal(t, tt.owned, m.owned, "%d: %s", i, tt.name)
	}

	m := mark
	m.known = base()
	m.Done(want, m.Next(want), failed)
	assert.EqualValues(t, 90, m.wentBack.most, "the next mark is as high")
	m.suspect(Cell{}, true)
	m.suspect(Cell{}, false)
	assert.True(t, m.wentBack.proof, "no later read takes it back")

	m = New(Cell{Record: base().Record}, false) // of a cell that the first grant makes
	assert.Empty(t, m.Done(want, Op{Kind: Read}, Result{}))
	assert.Equal(t, Refill, m.Next(want).Why)

	m = Machine{known: base()}
	for i := range 2 * maxPending {
		m.Done(want, Op{Why: Refill, Range: Range{40, 40 + uint64(i)}}, failed)
	}
	assert.Len(t, m.pending, maxPending)
	assert.EqualValues(t, 2*maxPending-1, m.Unknown())
	m.owned = []Range{{10, 20}, {30, 40}}
	assert.EqualValues(t, 15, m.Unused(15))
	assert.EqualValues(t, 65, m.Left(35))
}
