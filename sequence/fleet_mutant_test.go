package sequence_test

import (
	"context"
	"testing"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// mutant breaks the protocol as others have got it wrong. It leaves all that it does not
// replace as it is.
type mutant struct {
	name string
	// seeds is within how many of them it must be caught.
	seeds int
	// faults are more frequent than they are drawn to be.
	faults []fleettest.FaultKind
	// caught is the check that must see it.
	caught string
	mode   *sequence.Mode // of all sequences, or nil
	recur  bool           // versions begin again when the store goes back

	// store stands between the process and the store.
	store func(*process, stores.Store) stores.Store
	// next replaces an operation, and done changes what the machine knows of one.
	next func(*opened, *count.Machine, count.Input, count.Op) count.Op
	done func(*opened, *count.Machine, *count.Op, count.Result)
	// close closes the sequence.
	close func(*opened, *thread, context.Context) error
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon a broken promise.
// It logs the checks that see it earlier.
func TestFleetCatches(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			fleettest.Catches(t, m.seeds, m.caught, func(seed uint64) *fleet { return newFleet(seed, &m) })
		})
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
		name: "S1 an unknown outcome is taken for a failure", seeds: 500, caught: "duplicate",
		store: func(_ *process, s stores.Store) stores.Store { return fleettest.Retrying{Store: s} },
	}, {
		name: "S2 the rest is given back before the seal", seeds: 500, caught: "duplicate", mode: new(segmented),
		faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown},
		close: func(s *opened, t *thread, ctx context.Context) error {
			m, in := s.s.Machine(), count.Input{Name: "early", Closing: true}
			m.Done(in, m.Next(in), count.Result{Used: s.s.Used()})
			if op := m.Next(in); op.Kind == count.Swap {
				s.p.client().Swap(ctx, s.key, op.Version, op.Record.Encode())
			}
			t.Pass(s.p.f.Between(0, 2*s.p.f.Period))
			return s.s.CloseContext(ctx)
		},
	}, {
		name: "S3 the rest is given back over another's segment", seeds: 500, caught: "duplicate", mode: new(segmented),
		faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown},
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
		name: "S4 a segment is handed out by a call's own refill and as the next one", seeds: 500, caught: "duplicate", mode: new(segmented),
		store: func(p *process, s stores.Store) stores.Store { return twice{s, p} },
	}, {
		name: "S5 a call gets a number of a write that was sent before it began", seeds: 500, caught: "granted before the call", mode: new(ordered),
		done: func(s *opened, _ *count.Machine, op *count.Op, _ count.Result) { op.Upto = s.s.Arrived() },
	}, {
		name: "S6 a store that went back goes unnoticed", seeds: 500, caught: "went back unnoticed",
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
		done:   unnoticed,
	}, {
		name: "S6 a store that went back goes unnoticed, and its versions begin again", seeds: 500, caught: "went back unnoticed", recur: true,
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
		done:   unnoticed,
	}, {
		// Of the store: a process that knows an old version writes over another history.
		name: "S6 the versions of a store begin again", seeds: 500, caught: "write over another history", recur: true,
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
	}, {
		name: "S7 a segment crosses the maximum", seeds: 500, caught: "above the maximum",
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
