package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/rig"
	"github.com/tickflake/tickflake/internal/rig/server"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// FleetConfig says how to run a [Fleet].
type FleetConfig struct {
	Processes int

	// Open opens a store for one process, with a client of its own. The fleet closes it, and does
	// not use it as a [stores.Locker].
	Open func(ctx context.Context) (stores.Store, error)

	Window  time.Duration // of the leases; 0 is 3 s
	Timeout time.Duration // of an operation of the store; 0 is 500 ms
	Offset  time.Duration // of the clocks at the start
	IDs     *rig.Ledger   // of what is issued; nil is a new one
}

// A call of NextContext may take callTimeout. It has failed if it takes longer than
// callLimit.
const (
	callTimeout = time.Second
	callLimit   = 20 * time.Second
	callPause   = 5 * time.Millisecond
	startLimit  = 5 * time.Second // of one try to open the store and to claim
	closeLimit  = time.Minute
)

// Fleet issues IDs under load while the test does something to the servers of the store.
// A process is a keeper with a generator and two goroutines that call NextContext again and
// again, on a store and a wall clock of its own. The processes of even numbers read that
// wall clock; those of odd numbers read it through a [monoclock.Clock]. When a clock is
// behind, they borrow. There are few more node numbers than processes, so that new processes
// use the numbers of crashed processes.
//
// All methods may be called from any goroutine. Those with a testing.TB may end the test.
type Fleet struct {
	FleetConfig
	Layout snowflake.Layout
	Stats  lease.Stats // after Close: the sums of all keepers' counts

	clocks []*wallClock
	logged server.Output // of the keepers

	ctx    context.Context // ends when the fleet is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup // of starting and closing runs
	began  time.Time

	mu         sync.Mutex // of all below
	runs       []*run     // the present run of each process
	all        []*run
	failures   map[error]int // by the sentinels that they wrap
	unexpected []string      // errors
}

// run is a process between its start and its crash.
type run struct {
	fleet   *Fleet
	process int
	name    string
	ctx     context.Context
	cancel  context.CancelFunc
	crashed atomic.Bool
	store   stores.Store
	calls   sync.WaitGroup // of its callers

	// Under the fleet's lock; gen is nil until the claim.
	gen    *generator.Generator
	issued int
	last   error // of a start or a call
}

// wallClock is the machine's wall clock and an offset. It is a [monoclock.Source] as well.
type wallClock struct {
	began  time.Time
	offset atomic.Int64 // nanoseconds
}

func (c *wallClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}
func (c *wallClock) Wall() time.Time                        { return c.Now() }
func (c *wallClock) Elapsed() time.Duration                 { return time.Since(c.began) }
func (c *wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// StartFleet starts a fleet, which is closed when the test ends, and returns when each
// process has issued an ID. If that takes more than a minute, the test fails at once.
func StartFleet(t testing.TB, config FleetConfig) *Fleet {
	t.Helper()
	if config.Window == 0 {
		config.Window = 3 * time.Second
	}
	if config.Timeout == 0 {
		config.Timeout = 500 * time.Millisecond
	}
	if config.IDs == nil {
		config.IDs = new(rig.Ledger)
	}
	f := &Fleet{FleetConfig: config, Layout: snowflake.Default(), began: time.Now(), runs: make([]*run, config.Processes), failures: map[error]int{}}
	f.Layout.NodeBits = bits.Len(uint(config.Processes))
	f.ctx, f.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		f.Close(t)
		if t.Failed() {
			t.Logf("the keepers have logged:\n%s", &f.logged)
		}
	})
	for range config.Processes {
		f.clocks = append(f.clocks, &wallClock{began: f.began})
	}
	f.Step(config.Offset)
	for i := range config.Processes {
		f.start(i)
	}
	f.WaitIssued(t, 1, time.Minute)
	return f
}

// Step steps the wall clocks of some processes, or of all if none is named.
func (f *Fleet) Step(d time.Duration, processes ...int) {
	if len(processes) == 0 {
		for i := range f.clocks {
			processes = append(processes, i)
		}
	}
	for _, i := range processes {
		f.clocks[i].offset.Add(int64(d))
	}
}

// Crash ends a process without a release: its store is closed first, and sends nothing more. Then
// it starts the process again, and does not wait until it has claimed.
func (f *Fleet) Crash(process int) {
	f.mu.Lock()
	r := f.runs[process]
	f.mu.Unlock()
	r.crashed.Store(true)
	r.cancel()
	f.start(process)
}

// start starts a run of a process.
func (f *Fleet) start(process int) {
	r := &run{fleet: f, process: process}
	r.ctx, r.cancel = context.WithCancel(f.ctx)
	f.mu.Lock()
	r.name = fmt.Sprintf("process %d of the fleet of %s, run %d of all", process, f.began.Format("15:04:05.000"), len(f.all)+1)
	f.runs[process] = r
	f.all = append(f.all, r)
	f.mu.Unlock()
	f.wg.Go(r.live)
}

// live opens the store, claims, lets the callers issue IDs until the run ends, and closes.
func (r *run) live() {
	var gen *generator.Generator
	for gen == nil {
		ctx, cancel := context.WithTimeout(r.ctx, startLimit)
		opened, err := r.open(ctx)
		cancel()
		if gen = opened; err != nil {
			r.failed("start", err)
			if !r.pause(50 * time.Millisecond) {
				return
			}
		}
	}
	r.fleet.mu.Lock()
	r.gen = gen
	r.fleet.mu.Unlock()
	for range 2 {
		r.calls.Go(r.call)
	}
	r.calls.Wait()
	if r.crashed.Load() {
		_, _ = r.store.Close(), gen.Close()
	} else if err := errors.Join(gen.Close(), r.store.Close()); err != nil && !errors.Is(err, lease.ErrNotReleased) {
		r.failed("close", err)
	}
}

// open opens the store and claims. After an error, it leaves nothing behind.
func (r *run) open(ctx context.Context) (*generator.Generator, error) {
	f := r.fleet
	store, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	r.store = struct{ stores.Store }{store}
	var clock monoclock.Interface = f.clocks[r.process]
	if r.process%2 == 1 {
		clock = monoclock.New(monoclock.WithSource(f.clocks[r.process]))
	}
	log := slog.New(slog.NewTextHandler(&f.logged, nil)).With("run", r.name)
	keeper, err := lease.Claim(ctx, r.store, lease.WithLayout(f.Layout), lease.WithClock(clock), lease.WithOwner(r.name),
		lease.WithWindow(f.Window), lease.WithTimeout(f.Timeout), lease.WithLogger(log))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.BorrowUpTo(24*time.Hour)))
	if err != nil {
		return nil, errors.Join(err, keeper.Close(), store.Close())
	}
	return gen, nil
}

// call issues IDs until the run ends.
func (r *run) call() {
	for r.pause(callPause) {
		begin := time.Since(r.fleet.began)
		ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
		id, err := r.gen.NextContext(ctx)
		cancel()
		end := time.Since(r.fleet.began)
		if end-begin > callLimit {
			r.failed("slow call", fmt.Errorf("%v took %v", callTimeout, end-begin))
		}
		if err == nil {
			r.fleet.IDs.Add(r.name, int64(begin), int64(end), int64(id))
			r.fleet.mu.Lock()
			r.issued++
			r.fleet.mu.Unlock()
		} else if r.ctx.Err() == nil {
			r.failed("call", err)
		}
	}
}

// pause waits, and reports whether the run goes on.
func (r *run) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
	}
	return r.ctx.Err() == nil
}

// failed notes an error. Each error of a call has no grant or a clock that had gone back.
func (r *run) failed(what string, err error) {
	f := r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	r.last = err
	expected := what == "start"
	for _, sentinel := range []error{generator.ErrNotGranted, generator.ErrBehind, generator.ErrExhausted, lease.ErrMoved} {
		if errors.Is(err, sentinel) {
			f.failures[sentinel]++
			expected = expected || what == "call" && sentinel != lease.ErrMoved
		}
	}
	if !expected || errors.Is(err, lease.ErrLost) {
		f.unexpected = append(f.unexpected, fmt.Sprintf("%s, %s: %v", r.name, what, err))
	}
}

// Failed returns the number of errors so far that wrap generator.ErrNotGranted or lease.ErrMoved.
func (f *Fleet) Failed(sentinel error) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures[sentinel]
}

// WaitIssued waits until each process has issued n more IDs, and returns how long that took. If it takes longer than limit, the test fails at once.
func (f *Fleet) WaitIssued(t testing.TB, n int, limit time.Duration) time.Duration {
	t.Helper()
	return f.wait(t, 0, n, limit)
}

// WaitRecovered waits until each process has got two grants, of which the store has
// acknowledged the second after the call, and then has issued n more IDs. So the IDs are not those of a grant from before. It returns how long that took. If it takes longer than
// limit, the test fails at once.
func (f *Fleet) WaitRecovered(t testing.TB, n int, limit time.Duration) time.Duration {
	t.Helper()
	return f.wait(t, 2, n, limit)
}

func (f *Fleet) wait(t testing.TB, grants uint64, n int, limit time.Duration) time.Duration {
	t.Helper()
	type mark struct {
		run    *run
		grants uint64
		issued int // when it had the grants, or -1
	}
	begin := time.Now()
	marks := make([]mark, f.Processes)
	for {
		waiting := ""
		f.mu.Lock()
		for i, r := range f.runs {
			m := &marks[i]
			if r.gen == nil {
				waiting = fmt.Sprintf("%s has not claimed: %v", r.name, r.last)
				continue
			}
			stats := r.gen.Keeper().Stats()
			got := stats.Claims + stats.Extensions
			if m.run != r {
				*m = mark{run: r, grants: got, issued: -1}
			}
			if m.issued < 0 && got >= m.grants+grants {
				m.issued = r.issued
			}
			switch {
			case m.issued < 0:
				waiting = fmt.Sprintf("%s has got %d grants: %v", r.name, got-m.grants, r.gen.Keeper().Err())
			case r.issued < m.issued+n:
				waiting = fmt.Sprintf("%s has issued %d of %d: %v", r.name, r.issued-m.issued, n, r.last)
			}
		}
		f.mu.Unlock()
		took := time.Since(begin)
		if waiting == "" {
			return took
		}
		if took > limit {
			t.Fatalf("after %v: %s", took.Round(time.Millisecond), waiting)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Close ends all processes, which release their node numbers, and returns the fleet. It is an
// error of the test if that takes more than a minute. A second call does nothing more.
func (f *Fleet) Close(t testing.TB) *Fleet {
	t.Helper()
	f.cancel()
	done := make(chan struct{})
	go func() {
		f.wg.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Errorf("the fleet has not closed after %v", closeLimit)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.all {
		if r.gen != nil {
			s := r.gen.Keeper().Stats()
			f.Stats.Claims += s.Claims
			f.Stats.Extensions += s.Extensions
			f.Stats.Conflicts += s.Conflicts
			f.Stats.Failures += s.Failures
			f.Stats.WentBack += s.WentBack
			r.gen = nil
		}
	}
	return f
}

// Check fails the test unless the fleet worked as with a store that loses nothing: no ID came
// twice, no store went back, and all that CheckCalls says.
func (f *Fleet) Check(t testing.TB) {
	t.Helper()
	f.CheckCalls(t)
	if n, example := f.IDs.Twice(); n > 0 {
		t.Errorf("%d were issued twice: %s", n, example)
	}
	if f.Stats.WentBack > 0 {
		t.Errorf("the store went back %d times", f.Stats.WentBack)
	}
}

// CheckCalls fails the test unless the IDs of each run ascend, each call has ended in time,
// and each failed call had no grant or a clock that had gone back. It logs the counts.
func (f *Fleet) CheckCalls(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := f.IDs.Count()
	t.Logf("%d IDs; %+v; errors: %v", n, f.Stats, f.failures)
	if n, example := f.IDs.Disorder(true); n > 0 {
		t.Errorf("%d in disorder: %s", n, example)
	}
	if n := len(f.unexpected); n > 0 {
		t.Errorf("%d unexpected errors: %s", n, strings.Join(f.unexpected[:min(n, 10)], "; "))
	}
}
