package sequence_test

import (
	"context"
	"testing"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks what it does not leave nil.
type mutant struct {
	fleettest.Mutant
	mode  *sequence.Mode // of all sequences, or nil
	recur bool           // versions begin again when the store goes back

	// store stands between the process and the store.
	store func(*process, stores.Store) stores.Store
	// next replaces an operation, and done changes what the machine knows of one.
	next func(*opened, *count.Machine, count.Input, count.Op) count.Op
	done func(*opened, *count.Machine, *count.Op, count.Result)
	// close closes the sequence.
	close func(*opened, *fleettest.Thread, context.Context) error
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon a broken promise.
func TestFleetCatches(t *testing.T) {
	for _, m := range mutants {
		fleettest.Catch(t, m.Mutant, func(seed uint64) *fleet { return newFleet(seed, &m) })
	}
}

// twice gives the numbers of a grant to the calls that wait, before the Sequence puts all of
// them into its window.
type twice struct {
	stores.Store
	p *process
}

func (s twice) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.Store.Swap(ctx, key, version, value)
	for _, o := range s.p.opened {
		if r := o.sent; err == nil && o.key == key && r.From < r.Next {
			o.s.Serve(count.Range{From: r.From, To: r.Next})
		}
	}
	return now, err
}

var mutants = []mutant{
	{
		Mutant: fleettest.Mutant{Name: "S1 an unknown outcome is taken for a failure", Seeds: 500, Caught: "duplicate"},
		store:  func(_ *process, s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		Mutant: fleettest.Mutant{Name: "S2 the rest is given back before the seal", Seeds: 500, Caught: "duplicate", Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown}},
		mode:   new(segmented),
		close: func(s *opened, t *fleettest.Thread, ctx context.Context) error {
			m, in := s.s.Machine(), count.Input{Name: "early", Closing: true}
			m.Done(in, m.Next(in), count.Result{Used: s.s.Used()})
			if op := m.Next(in); op.Kind == count.Swap {
				s.p.client().Swap(ctx, s.key, op.Version, op.Record.Encode())
			}
			t.Pass(s.p.f.Between(0, 2*s.p.f.Period))
			return s.s.CloseContext(ctx)
		},
	}, {
		Mutant: fleettest.Mutant{Name: "S3 the rest is given back over another's segment", Seeds: 500, Caught: "duplicate", Faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown}},
		mode:   new(segmented),
		next: func(s *opened, m *count.Machine, in count.Input, op count.Op) count.Op {
			grants := s.life().grants
			for i := len(grants) - 1; i >= 0 && in.Closing && op.Kind == count.None; i-- {
				if g, c := grants[i], m.Known(); g.owner == s.p.Process && in.Used < g.To && g.To < c.Record.Next {
					r := c.Record
					r.Next = max(g.From, in.Used)
					r.From, r.Write, r.Last = r.Next, in.Name, r.Names()
					r.Writes++
					return count.Op{Kind: count.Swap, Why: count.Close, Version: c.Version, Record: r, Range: count.Range{From: r.Next, To: g.To}}
				}
			}
			return op
		},
	}, {
		// The refill of a call that waits hands numbers out by itself, and the window gets the
		// same range as a prefetched one.
		Mutant: fleettest.Mutant{Name: "S4 a segment is handed out by a call's own refill and as the next one", Seeds: 500, Caught: "duplicate"},
		mode:   new(segmented),
		store:  func(p *process, s stores.Store) stores.Store { return twice{s, p} },
	}, {
		Mutant: fleettest.Mutant{Name: "S5 a call gets a number of a write that was sent before it began", Seeds: 500, Caught: "granted before the call"},
		mode:   new(ordered),
		done:   func(s *opened, _ *count.Machine, op *count.Op, _ count.Result) { op.Upto = s.s.Arrived() },
	}, {
		Mutant: fleettest.Mutant{Name: "S6 a store that went back goes unnoticed", Seeds: 500, Caught: "went back unnoticed", Faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}},
		done:   unnoticed,
	}, {
		Mutant: fleettest.Mutant{Name: "S6 a store that went back goes unnoticed, and its versions begin again", Seeds: 500, Caught: "went back unnoticed", Faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}},
		recur:  true,
		done:   unnoticed,
	}, {
		// Of the store: a process that knows an old version writes over another history.
		Mutant: fleettest.Mutant{Name: "S6 the versions of a store begin again", Seeds: 500, Caught: "write over another history", Faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind}},
		recur:  true,
	}, {
		Mutant: fleettest.Mutant{Name: "S7 a segment crosses the maximum", Seeds: 500, Caught: "above the maximum"},
		next: func(s *opened, _ *count.Machine, in count.Input, op count.Op) count.Op {
			if op.Why == count.Refill {
				op.Range.To = max(op.Range.To, op.Range.From+in.Want)
				op.Record.Next = op.Range.To
				op.Record.Most = max(op.Record.Most, op.Record.Next)
			}
			return op
		},
	},
}

// unnoticed lets the machine know nothing of the cell but its last reading.
func unnoticed(s *opened, m *count.Machine, op *count.Op, r count.Result) {
	if op.Kind == count.Read && r.Status == count.OK {
		*m = count.New(r.Cell, r.Cell.Record.Mode == ordered.String())
	}
}
