package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// bubbleClock is the time of a synctest bubble, counted from noon. It waits by timers,
// while the machine's own clock would have the generator sleep on its thread.
type bubbleClock struct{ began time.Time }

func (b bubbleClock) Now() time.Time                         { return noon.Add(time.Since(b.began)) }
func (b bubbleClock) Elapsed() time.Duration                 { return time.Since(b.began) }
func (b bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// outage is a generator under a lease with its keeper's goroutine, and a store whose
// faults the test sets.
type outage struct {
	*testing.T
	claim
	clock  bubbleClock
	keeper *lease.Keeper
	gen    *generator.Generator
	store  *storetest.Memory

	mu    sync.Mutex
	fault func(context.Context, storetest.Op) storetest.Fault // or nil
	stale atomic.Bool                                         // see pastStore

	issued map[snowflake.ID]bool
	last   snowflake.ID
}

// onEveryOutage runs a scenario as a subtest for every strategy of the table.
func onEveryOutage(t *testing.T, scenario func(o *outage)) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &outage{T: t, claim: c, clock: bubbleClock{time.Now()}, store: storetest.NewMemory(), issued: map[snowflake.ID]bool{}}
				o.store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
					o.mu.Lock()
					fault := o.fault
					o.mu.Unlock()
					if fault == nil {
						return storetest.None
					}
					return fault(ctx, op)
				}
				var err error
				o.keeper, err = lease.Claim(t.Context(), o.store, lease.WithClock(o.clock), lease.WithLayout(layout()), silent)
				require.NoError(t, err)
				o.gen, err = generator.New(generator.WithLease(o.keeper), generator.WithStrategy(c.strategy))
				require.NoError(t, err)
				defer func() { require.NoError(t, o.gen.Close()) }()
				scenario(o)
			})
		})
	}
}

func (o *outage) set(fault func(context.Context, storetest.Op) storetest.Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = fault
}

// next makes a call and checks its bound. A strategy that waits forever would wait for
// the store, too, so its context has a deadline.
func (o *outage) next() error {
	o.Helper()
	bound, began := o.wait(), time.Now()
	ctx := context.Background()
	if bound == generatortest.Forever {
		bound = 50 * time.Millisecond
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	id, err := o.gen.NextContext(ctx)
	require.LessOrEqual(o, time.Since(began), bound, "the call outlasted its bound")
	if err == nil {
		require.False(o, o.issued[id], "%d twice", id)
		require.Greater(o, id, o.last, "out of order")
		o.issued[id], o.last = true, id
	}
	return err
}

// every makes a call every 100 ms for a while; all must be served.
func (o *outage) every(while time.Duration) {
	o.Helper()
	for began := time.Now(); time.Since(began) < while; time.Sleep(100 * time.Millisecond) {
		require.NoError(o, o.next(), "%s in", time.Since(began))
	}
}

// recovers returns how long it takes until a call is served.
func (o *outage) recovers(within time.Duration) {
	o.Helper()
	began := time.Now()
	for o.next() != nil {
		require.Less(o, time.Since(began), within, "it does not recover")
		time.Sleep(10 * time.Millisecond)
	}
	o.every(time.Minute)
	assert.NoError(o, o.keeper.Err())
}

// unhurried is long enough for some extensions, and ends when none is under way: those
// come every 10 s.
const unhurried = 63 * time.Second

// untilTheLimit takes the store away for two minutes: all calls are served until the
// end of the grant, at least two thirds of a window later, and all fail from then on.
func (o *outage) untilTheLimit(why error) {
	o.Helper()
	began := time.Now()
	_, limit := o.keeper.Granted()
	require.GreaterOrEqual(o, limit.Sub(o.clock.Now()), lease.DefaultWindow*2/3-time.Second)
	failed := 0
	for time.Since(began) < 2*time.Minute {
		err := o.next()
		switch now := o.clock.Now(); {
		case err == nil:
			require.True(o, now.Before(limit) || !tickOf(o, o.last).After(limit), "nothing was granted for %s", now)
		default:
			failed++
			var none *generator.GrantError
			require.ErrorAs(o, err, &none)
			require.False(o, now.Before(limit), "there is time until %s, and it is %s", limit, now)
			assert.ErrorIs(o, err, generator.ErrNotGranted)
			assert.NotErrorIs(o, err, lease.ErrLost)
			assert.ErrorIs(o, err, why)
			assert.ErrorIs(o, err, lease.ErrStore)
			assert.True(o, none.Limit.Equal(limit), "%s, not %s", none.Limit, limit)
			assert.Contains(o, err.Error(), none.Past.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Positive(o, failed)
	_, still := o.keeper.Granted()
	assert.Equal(o, limit, still)
}

// The store cannot be reached.
func TestF15_StoreOutage_Away(t *testing.T) {
	onEveryOutage(t, func(o *outage) {
		for range 2 { // it bears a second one as well as the first
			o.every(unhurried)
			o.set(func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable })
			o.untilTheLimit(storetest.ErrFault)
			o.set(nil)
			o.recovers(9100 * time.Millisecond) // it asks at least every 9 seconds
		}
	})
}

// The store does not answer: each operation lasts until its timeout.
func TestF15_StoreOutage_Hangs(t *testing.T) {
	onEveryOutage(t, func(o *outage) {
		o.every(unhurried)
		o.set(func(ctx context.Context, _ storetest.Op) storetest.Fault { <-ctx.Done(); return storetest.None })
		o.untilTheLimit(context.DeadlineExceeded)
		o.set(nil)
		o.recovers(lease.DefaultTimeout + 9100*time.Millisecond)
	})
}

// The store is slow, but answers in time: no call fails or waits.
func TestF15_StoreOutage_Slow(t *testing.T) {
	onEveryOutage(t, func(o *outage) {
		o.set(func(context.Context, storetest.Op) storetest.Fault {
			time.Sleep(lease.DefaultTimeout - 100*time.Millisecond)
			return storetest.None
		})
		o.every(5 * time.Minute)
		assert.NoError(o, o.keeper.Err())
		assert.Positive(o, o.keeper.Stats().Extensions)
	})
}

// Every other write takes effect, and its answer is lost: the next write conflicts, and
// the keeper reads that the lost one was its own.
func TestF15_StoreOutage_UnknownOutcome(t *testing.T) {
	onEveryOutage(t, func(o *outage) {
		swaps := 0
		o.set(func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind == storetest.OpSwap {
				if swaps++; swaps%2 == 1 {
					return storetest.ReplyLost
				}
			}
			return storetest.None
		})
		o.every(5 * time.Minute)
		o.set(nil)
		o.recovers(time.Millisecond)
		assert.Greater(o, swaps, 10)
		assert.Zero(o, o.keeper.Stats().Conflicts)
		assert.EqualValues(o, 1, o.keeper.Stats().Claims, "it never lost its node number")
	})
}

// The answers are lost, and the writes arrive after the outage, the latest first.
func TestF15_StoreOutage_LateWrites(t *testing.T) {
	onEveryOutage(t, func(o *outage) {
		o.every(unhurried)
		o.set(func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind == storetest.OpSwap {
				return storetest.Delayed
			}
			return storetest.None // a keeper that cannot read the cell does not write it again
		})
		o.untilTheLimit(storetest.ErrFault)
		late := len(o.store.Late())
		require.Greater(o, late, 10)
		landed := 0
		for i := late - 1; i >= 0; i-- {
			if o.store.Deliver(i) {
				landed++
			}
		}
		assert.Equal(o, 1, landed, "all but one are of no effect")
		o.set(nil)
		o.recovers(9100 * time.Millisecond)
	})
}

// Three processes on four node numbers, while each operation of the store goes wrong in
// any way, every other time, for ten minutes. Every failure is the typed error.
func TestF15_StoreOutage_AllAtOnce(t *testing.T) {
	onCrews(t, func(o *outage, draw func(int) int) {
		if draw(3) == 0 {
			o.store.Heal()
			o.store.Fail(storetest.Fault(draw(4)), 1+draw(60))
		}
		if late := len(o.store.Late()); late > 0 && draw(6) == 0 {
			if i := draw(late); draw(3) == 0 {
				o.store.Drop(i)
			} else {
				o.store.Deliver(i)
			}
		}
	}, func(t *testing.T, _ []*outage, _, failed int) { assert.Positive(t, failed) })
}

// The same, while one in five cells that are read or listed is shown as it was before. Answers to
// writes are lost as well, since a keeper reads its cell only then.
func TestF21_StaleRead(t *testing.T) {
	onCrews(t, func(o *outage, draw func(int) int) {
		o.stale.Store(true)
		if draw(3) == 0 {
			o.store.Fail(storetest.ReplyLost, 1)
		}
	}, func(t *testing.T, crew []*outage, served, failed int) {
		assert.Greater(t, served, 9*failed)
		for _, o := range crew {
			assert.EqualValues(t, 1, o.keeper.Stats().Claims, "no process has lost its number")
		}
	})
}

// onCrews runs three processes for ten minutes, for every strategy of the table. Each second each
// makes a call, after spoil has made its faults; check gets how many calls were served and failed.
func onCrews(t *testing.T, spoil func(o *outage, draw func(n int) int), check func(t *testing.T, crew []*outage, served, failed int)) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew, served, failed := serve(t, c, spoil)
				t.Logf("%d calls served, %d failed", served, failed)
				check(t, crew, served, failed)
			})
		})
	}
}

func serve(t *testing.T, c claim, spoil func(o *outage, draw func(n int) int)) (crew []*outage, served, failed int) {
	random := rand.New(rand.NewPCG(15, 15))
	var mu sync.Mutex // of random
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	narrow := layout()
	narrow.NodeBits = 2
	cells, clock := storetest.NewMemory(), bubbleClock{time.Now()}
	past := &past{now: cells, cells: map[string][]stores.Cell{}}
	issued := map[snowflake.ID]bool{}
	for range 3 {
		o := &outage{T: t, claim: c, clock: clock, store: cells.Client(), issued: issued}
		var err error
		o.keeper, err = lease.Claim(t.Context(), &pastStore{o.store, past, draw, &o.stale}, lease.WithClock(clock), lease.WithLayout(narrow), lease.WithWindow(3*time.Second), silent)
		require.NoError(t, err)
		o.gen, err = generator.New(generator.WithLease(o.keeper), generator.WithStrategy(c.strategy))
		require.NoError(t, err)
		crew = append(crew, o)
	}
	for began := time.Now(); time.Since(began) < 10*time.Minute; {
		for _, o := range crew {
			spoil(o, draw)
			err := o.next()
			if err == nil {
				served++
				continue
			}
			failed++
			var none *generator.GrantError
			require.True(t, errors.As(err, &none), err)
		}
		time.Sleep(time.Second)
	}
	for _, o := range crew {
		o.store.Heal()
		o.stale.Store(false)
	}
	time.Sleep(20 * time.Second) // two windows, until the numbers that were lost are free, and more
	for _, o := range crew {
		o.every(time.Minute)
		assert.Zero(t, o.keeper.Stats().WentBack, "the store has lost nothing")
		require.NoError(t, o.gen.Close())
	}
	return crew, served, failed
}

// past has the earlier states of all cells.
type past struct {
	now   *storetest.Memory
	mu    sync.Mutex
	cells map[string][]stores.Cell
}

func (p *past) note(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cell, err := p.now.Read(context.Background(), key); err == nil {
		p.cells[key] = append(p.cells[key], cell)
	}
}

func (p *past) of(key string) []stores.Cell {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cells[key]
}

// pastStore shows one in five cells as it was at some time before, while it is stale.
type pastStore struct {
	*storetest.Memory
	past  *past
	draw  func(n int) int
	stale *atomic.Bool
}

func (p *pastStore) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	p.past.note(key)
	return p.Memory.Swap(ctx, key, version, value)
}

func (p *pastStore) Read(ctx context.Context, key string) (stores.Cell, error) {
	cell, err := p.Memory.Read(ctx, key)
	return p.shown(key, cell), err
}

func (p *pastStore) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	cells, err := p.Memory.List(ctx, from, to, limit)
	for i, cell := range cells {
		if was := p.shown(cell.Key, cell); was.Version != 0 {
			cells[i] = was
		}
	}
	return cells, err
}

func (p *pastStore) shown(key string, cell stores.Cell) stores.Cell {
	if past := p.past.of(key); len(past) > 0 && p.stale.Load() && p.draw(5) == 0 {
		return past[p.draw(len(past))]
	}
	return cell
}
