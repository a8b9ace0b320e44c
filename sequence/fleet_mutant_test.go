package sequence_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/segment"
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
	// decide is the decision of a round.
	decide func(*opened, segment.State, segment.Cell) segment.Decision
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

// retrying takes a write of unknown outcome for one that has failed, and makes it once more
// with the version that it finds.
type retrying struct{ stores.Store }

func (s retrying) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.Store.Swap(ctx, key, version, value)
	if err == nil || errors.Is(err, stores.ErrConflict) {
		return now, err
	}
	cell, readErr := s.Store.Read(ctx, key)
	if readErr != nil {
		return now, err
	}
	return s.Store.Swap(ctx, key, cell.Version, value)
}

// belated gives numbers of each write to the calls that have begun meanwhile.
type belated struct {
	stores.Store
	p *process
}

func (s belated) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.Store.Swap(ctx, key, version, value)
	for _, o := range s.p.opened {
		if o.key == key {
			o.s.ServeAll()
		}
	}
	return now, err
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
			o.s.Serve(segment.Range{From: r.From, To: r.Next})
		}
	}
	return now, err
}

var segmented, ordered = sequence.Segmented, sequence.Ordered

var mutants = []mutant{
	{
		name: "S1 an unknown outcome is taken for a failure", seeds: 500, caught: "duplicate",
		store: func(_ *process, s stores.Store) stores.Store { return retrying{s} },
	}, {
		name: "S2 the rest is given back before the seal", seeds: 500, caught: "duplicate", mode: &segmented,
		faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown, fleettest.Shutdown},
		close: func(s *opened, t *thread, ctx context.Context) error {
			if d := segment.Decide(s.s.Closing(), s.s.Cell()); d.Kind == segment.GiveBack {
				s.p.client().Swap(ctx, s.key, d.Version, d.Record.Encode())
			}
			t.Pass(s.p.f.Between(0, 2*s.p.f.Period))
			return s.s.CloseContext(ctx)
		},
	}, {
		name: "S3 the rest is given back over another's segment", seeds: 500, caught: "duplicate", mode: &segmented,
		faults: []fleettest.FaultKind{fleettest.Shutdown, fleettest.Shutdown},
		decide: func(_ *opened, s segment.State, c segment.Cell) segment.Decision {
			if n := len(s.Owned); s.Closing && n > 0 && s.Owned[n-1].To < c.Record.Next {
				from := max(s.Owned[n-1].From, s.Used)
				r := c.Record
				r.Next, r.From, r.Write = from, from, s.Name
				r.Writes++
				return segment.Decision{Kind: segment.GiveBack, Version: c.Version, Record: r, Range: segment.Range{From: from, To: s.Owned[n-1].To}}
			}
			return segment.Decide(s, c)
		},
	}, {
		// The refill of a call that waits hands numbers out by itself, and the window gets the
		// same range as a prefetched one.
		name: "S4 a segment is handed out by a call's own refill and as the next one", seeds: 500, caught: "duplicate", mode: &segmented,
		store: func(p *process, s stores.Store) stores.Store { return twice{s, p} },
	}, {
		name: "S5 a call gets a number of a write that was sent before it began", seeds: 500, caught: "granted before the call", mode: &ordered,
		store: func(p *process, s stores.Store) stores.Store { return belated{s, p} },
	}, {
		name: "S6 a store that went back goes unnoticed", seeds: 500, caught: "went back unnoticed",
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
		decide: unnoticed,
	}, {
		name: "S6 a store that went back goes unnoticed, and its versions begin again", seeds: 500, caught: "went back unnoticed", recur: true,
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
		decide: unnoticed,
	}, {
		// Of the store: a process that knows an old version writes over another history.
		name: "S6 the versions of a store begin again", seeds: 500, caught: "write over another history", recur: true,
		faults: []fleettest.FaultKind{fleettest.Rewind, fleettest.Rewind},
	}, {
		name: "S7 a segment crosses the maximum", seeds: 500, caught: "above the maximum",
		decide: func(_ *opened, s segment.State, c segment.Cell) segment.Decision {
			limit := c.Record.Max
			if c.Record.Left() > 0 {
				c.Record.Max = math.MaxInt64
			}
			d := segment.Decide(s, c)
			d.Record.Max = limit
			return d
		},
	},
}

// unnoticed decides as a process that knows nothing of the cell but its last reading.
func unnoticed(_ *opened, s segment.State, c segment.Cell) segment.Decision {
	if c.Version == 0 {
		return segment.Decision{Kind: segment.Deleted}
	}
	s.Seen = segment.Seen{Sequence: &c.Record}
	return segment.Decide(s, c)
}
