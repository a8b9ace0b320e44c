package leasetest

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// testRestart restarts a generator on a store, with the wall clock stepped back by a
// second, an hour and a year in between. It checks that no ID is issued twice,
// and that a generator waits, borrows or rejects as its strategy says. Time is virtual; the store is real.
func testRestart(t *testing.T, open opener) {
	for _, strategy := range []strategies.Strategy{strategies.WaitUpTo(5 * time.Second), strategies.BorrowUpTo(2 * time.Hour), strategies.Reject()} {
		for _, back := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour} {
			for _, crash := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s back", strategy, back)
				if crash {
					name += ", killed"
				}
				t.Run(name, func(t *testing.T) {
					r := restart{store: open(t, fresh()), clock: clocktest.NewVirtual(time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)),
						strategy: strategy, seen: map[snowflake.ID]bool{}}
					if _, ok := r.store.(stores.Locker); ok && crash {
						t.Skip("a lock ends with its process, and this test is one: the store's own tests kill some")
					}
					r.clock.AutoAdvance(true)
					r.run(t, back, crash)
				})
			}
		}
	}
}

// restartWindow is how far the limit is ahead of a process that is killed.
const restartWindow = 2 * time.Second

type restart struct {
	store    stores.Store
	clock    *clocktest.Virtual
	keeper   *lease.Keeper
	strategy strategies.Strategy
	seen     map[snowflake.ID]bool
	last     time.Time // of any ID
}

func (r *restart) run(t *testing.T, back time.Duration, crash bool) {
	gen := r.start(t)
	for range 4 {
		for range 1000 {
			r.must(t, gen)
		}
		r.clock.Advance(time.Millisecond)
	}
	if !crash {
		must(t, gen.Close())
	}
	r.clock.Step(-back)
	gen = r.start(t)

	// The floor is just above the last ID, or, after a crash, up to a window beyond it.
	least, most := back-10*time.Millisecond, back+10*time.Millisecond
	if crash {
		most += restartWindow
	}
	within := func(what string, got time.Duration) {
		if got < least || got > most {
			t.Errorf("%s is %s, want %s to %s", what, got, least, most)
		}
	}
	wait, borrow := strategies.Limits(r.strategy, strategies.Behind)
	before := r.clock.Passed()
	err := r.next(t, gen)
	waited := r.clock.Passed() - before
	if most <= wait {
		must(t, err)
		within("the wait", waited)
	} else if waited != 0 {
		t.Errorf("it waited %s", waited)
	}
	var lead *generator.LeadError
	switch {
	case most <= wait || most <= borrow:
		must(t, err)
	case !errors.As(err, &lead) || !errors.Is(err, generator.ErrBehind):
		t.Fatalf("want the error of a clock that is behind, got %v", err)
	default:
		within("the lead", lead.Lead)
		r.clock.Advance(lead.Lead)
		r.must(t, gen) // the clock has caught up
	}
	for range 2000 {
		r.clock.Advance(time.Millisecond / 100)
		r.must(t, gen)
	}
	must(t, gen.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a process, which always has the same node number.
func (r *restart) start(t *testing.T) *generator.Generator {
	keeper, err := lease.Claim(t.Context(), r.store, lease.WithClock(r.clock), lease.WithNode(lease.NodeNumber(7)),
		lease.WithWindow(restartWindow), lease.WithTimeout(time.Minute), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	r.keeper = keeper
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(r.strategy))
	must(t, err)
	return gen
}

func (r *restart) must(t *testing.T, gen *generator.Generator) {
	t.Helper()
	must(t, r.next(t, gen))
}

// next issues one ID, which must be new, and later than those before.
func (r *restart) next(t *testing.T, gen *generator.Generator) error {
	r.keeper.Poll(t.Context())
	id, err := gen.Next()
	if err != nil {
		return err
	}
	if r.seen[id] {
		return errors.New("issued twice")
	}
	r.seen[id] = true
	d, err := gen.Layout().Decode(id)
	must(t, err)
	if d.Time.Before(r.last) {
		return errors.New("out of order")
	}
	r.last = d.Time
	return nil
}
