//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/stepped"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// KeeperConfig says how the keepers of a [Fleet] run.
type KeeperConfig struct {
	// Open opens a store for one keeper, with a client of its own. The fleet closes it.
	Open func(ctx context.Context) (stores.Store, error)

	Window, Timeout time.Duration // of the leases, and of an operation of the store
	Log             io.Writer     // of the keepers
}

// A call of NextContext may take issueTimeout. It has failed if it takes longer than issueLimit.
const (
	issueTimeout = time.Second
	issueLimit   = 20 * time.Second
	claimLimit   = 5 * time.Second // of one try to open the store and to claim
)

// keeper is a member that issues IDs by itself, with no server before it: the keeper of a node number with a
// generator and a client of two goroutines, on a store and a wall clock of its own, as goroutines of this
// program. Those of even numbers read that wall clock; those of odd numbers read it through a
// [monoclock.Clock]. When a clock is behind, they borrow. There are few more node numbers than
// keepers, so that new runs use the numbers of crashed ones.
type keeper struct {
	stepped.Page
	index int
	*run  // the present one
}

// run is a keeper between its start and its crash. It is the caller of its only client.
type run struct {
	*Worker
	keeper *keeper
	ctx    context.Context
	cancel context.CancelFunc
	gen    atomic.Pointer[generator.Generator] // nil until the claim
}

// Now is the stepped time.
func (k *keeper) Now() time.Time { return k.Wall() }

// startKeepers starts them, and returns when each has issued an ID.
func (f *Fleet) startKeepers(ctx context.Context) error {
	f.Layout.NodeBits = bits.Len(uint(f.Keepers))
	for i := range f.Keepers {
		f.keepers = append(f.keepers, &keeper{index: i, Page: stepped.NewPage()})
		f.startKeeper(f.keepers[i])
	}
	return f.More(ctx, 1)
}

// startKeeper starts a run of a keeper.
func (f *Fleet) startKeeper(k *keeper) {
	f.runs++
	r := &run{keeper: k}
	r.Worker = f.worker(fmt.Sprintf("keeper %d, run %d of all of %s", k.index, f.runs, f.began.Format("15:04:05.000")), 2, r)
	r.operations, r.tries = operations[:1], 1
	r.ctx, r.cancel = context.WithCancel(f.work)
	k.run = r
	f.working.Go(r.live)
}

// Step steps the wall clocks of some keepers, or of all if none is named.
func (f *Fleet) Step(d time.Duration, keepers ...int) {
	for _, i := range keepers {
		f.keepers[i].Step(d)
	}
	if len(keepers) == 0 {
		for _, k := range f.keepers {
			k.Step(d)
		}
	}
}

// Crash ends a keeper without a release: its store is closed first, and sends nothing more. Then
// it starts the keeper again, and does not wait until it has claimed. It is for the goroutine that has
// started the fleet.
func (f *Fleet) Crash(keeper int) {
	f.keepers[keeper].cancel()
	f.startKeeper(f.keepers[keeper])
}

// live opens the store, claims, lets the client issue IDs until the run ends, and closes.
func (r *run) live() {
	f := r.fleet
	store, gen, err := r.open()
	for ; err != nil; store, gen, err = r.open() {
		r.note(operation{name: "start"}, err)
		if Pause(r.ctx, 50*time.Millisecond); r.ctx.Err() != nil {
			return
		}
	}
	r.gen.Store(gen)
	var calls sync.WaitGroup
	for range r.goroutines {
		calls.Go(func() { r.Worker.run(r.ctx) })
	}
	calls.Wait()
	if f.work.Err() == nil { // it has crashed
		_, _ = store.Close(), gen.Close()
	} else if err := errors.Join(gen.Close(), store.Close()); err != nil && !errors.Is(err, lease.ErrNotReleased) {
		f.Break(Known, "%s, close: %v", r.count.Name, err)
	}
	keeper, _ := gen.Keeper()
	s := keeper.Stats()
	f.Note(Stands, int64(s.WentBack), r.count.Name+" has seen it")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, s)
}

// open opens the store and claims. After an error, it leaves nothing behind.
func (r *run) open() (stores.Store, *generator.Generator, error) {
	c := r.fleet.Keeper
	ctx, cancel := context.WithTimeout(r.ctx, claimLimit)
	defer cancel()
	store, err := c.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	var clock monoclock.Interface = r.keeper
	if r.keeper.index%2 == 1 {
		clock = monoclock.New(monoclock.WithSource(r.keeper))
	}
	log := slog.New(slog.NewTextHandler(c.Log, nil)).With("run", r.count.Name)
	held, err := lease.Claim(ctx, store, lease.WithLayout(r.fleet.Layout), lease.WithClock(clock), lease.WithOwner(r.count.Name),
		lease.WithWindow(c.Window), lease.WithTimeout(c.Timeout), lease.WithLogger(log))
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	gen, err := generator.New(generator.WithLease(held), generator.WithStrategy(strategies.BorrowUpTo(24*time.Hour)))
	if err != nil {
		return nil, nil, errors.Join(err, held.Close(), store.Close())
	}
	return store, gen, nil
}

// IDs returns one ID. A run that has crashed refuses.
func (r *run) IDs(context.Context, int) ([]int64, error) {
	f, began := r.fleet, time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, issueTimeout)
	defer cancel()
	id, err := r.gen.Load().NextContext(ctx)
	if took := time.Since(began); took > issueLimit {
		f.Break(Ending, "%s: a call of %v took %v", r.count.Name, issueTimeout, took)
	}
	if err != nil && r.ctx.Err() != nil {
		err = &Refused{err: err}
	}
	return []int64{int64(id)}, err
}

// Numbers is not called: a keeper has no sequences.
func (r *run) Numbers(context.Context, string, int64) (int64, error) { panic("no sequences") }

// Close does nothing: the run ends by its context.
func (r *run) Close() error { return nil }

// granted is how many grants the store has given the run.
func (r *run) granted() uint64 {
	gen := r.gen.Load()
	if gen == nil {
		return 0
	}
	keeper, _ := gen.Keeper()
	s := keeper.Stats()
	return s.Claims + s.Extensions
}

// keepersRecovered breaks a promise unless each keeper gets two grants, of which the store has acknowledged
// the second after the call, and then issues more IDs. So the IDs are not those of a grant from before.
func (f *Fleet) keepersRecovered(ctx context.Context) {
	before := make([]uint64, len(f.keepers))
	for i, k := range f.keepers {
		before[i] = k.granted()
	}
	for i, k := range f.keepers {
		for k.granted() < before[i]+2 && ctx.Err() == nil {
			Pause(ctx, 10*time.Millisecond)
		}
	}
	if err := f.More(ctx, 10); err != nil {
		f.Break(Returns, "%v", err)
	}
}

// Failed waits until the clients have n more errors of a class.
func (f *Fleet) Failed(ctx context.Context, class string, n int64) error {
	failed := func() (sum int64) {
		for _, w := range f.workers() {
			sum += w.Count().Errors[class]
		}
		return sum
	}
	for want := failed() + n; failed() < want; Pause(ctx, 10*time.Millisecond) {
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d more calls have failed with %q", failed()-want+n, n, class)
		}
	}
	return nil
}

// Ended returns the counts of the keepers that have ended, one by run.
func (f *Fleet) Ended() []lease.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}
