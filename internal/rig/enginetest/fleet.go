package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
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

	// Open opens a store for one process, with a client of its own. The fleet closes it.
	// It must not be a [stores.Locker].
	Open func(ctx context.Context) (stores.Store, error)

	Window  time.Duration // of the leases; 0 is 3 s
	Timeout time.Duration // of an operation of the store; 0 is 500 ms
	Offset  time.Duration // of the clocks at the start
	Rate    int           // IDs per second of each of the two goroutines of a process; 0 is 200
}

// A call of NextContext may take callTimeout. It has failed if it takes longer than
// callLimit.
const (
	callTimeout = time.Second
	callLimit   = 20 * time.Second
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
	config FleetConfig
	layout snowflake.Layout
	clocks []*wallClock
	logged server.Output // of the keepers

	ctx    context.Context // ends when the fleet is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup // of starting and closing runs
	began  time.Time

	mu     sync.Mutex // of all below
	runs   []*run     // the present run of each process
	all    []*run
	seen   map[snowflake.ID]*run // who has issued it
	report Report
}

// run is a process between its start and its crash.
type run struct {
	fleet   *Fleet
	process int
	number  int // of the process's runs, from 1
	ctx     context.Context
	cancel  context.CancelFunc
	store   *mortal
	calls   sync.WaitGroup // of its callers

	// Under the fleet's lock; gen is nil until the claim.
	gen    *generator.Generator
	issued int
	high   snowflake.ID // the largest ID that a call has returned
	last   error        // of a start or a call
}

func (r *run) String() string { return fmt.Sprintf("process %d run %d", r.process, r.number) }

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
	if config.Rate == 0 {
		config.Rate = 200
	}
	f := &Fleet{config: config, layout: snowflake.Default(), began: time.Now(), runs: make([]*run, config.Processes),
		seen: map[snowflake.ID]*run{}, report: Report{Errors: map[string]int{}, Examples: map[string]string{}}}
	f.layout.NodeBits = bits.Len(uint(config.Processes))
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

// Crash ends a process without a release: from now on it sends nothing to the store. Then
// it starts the process again, and does not wait until it has claimed.
func (f *Fleet) Crash(process int) {
	f.mu.Lock()
	r := f.runs[process]
	f.mu.Unlock()
	r.store.dead.Store(true)
	r.cancel()
	f.start(process)
}

// start starts a run of a process.
func (f *Fleet) start(process int) {
	r := &run{fleet: f, process: process, number: 1, store: &mortal{}}
	r.ctx, r.cancel = context.WithCancel(f.ctx)
	f.mu.Lock()
	if old := f.runs[process]; old != nil {
		r.number = old.number + 1
	}
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
			if !r.pause(time.After(50 * time.Millisecond)) {
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
	err := errors.Join(gen.Close(), r.store.Close())
	if err != nil && !r.store.dead.Load() && !errors.Is(err, lease.ErrNotReleased) {
		r.failed("close", err)
	}
}

// open opens the store and claims. After an error, it leaves nothing behind.
func (r *run) open(ctx context.Context) (*generator.Generator, error) {
	f := r.fleet
	store, err := f.config.Open(ctx)
	if err != nil {
		return nil, err
	}
	r.store.Store = store
	var clock monoclock.Interface = f.clocks[r.process]
	if r.process%2 == 1 {
		clock = monoclock.New(monoclock.WithSource(f.clocks[r.process]))
	}
	log := slog.New(slog.NewTextHandler(&f.logged, nil)).With("run", r.String())
	keeper, err := lease.Claim(ctx, r.store, lease.WithLayout(f.layout), lease.WithClock(clock), lease.WithOwner(r.String()),
		lease.WithWindow(f.config.Window), lease.WithTimeout(f.config.Timeout), lease.WithLogger(log))
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
	ticker := time.NewTicker(time.Second / time.Duration(r.fleet.config.Rate))
	defer ticker.Stop()
	for r.pause(ticker.C) {
		r.fleet.mu.Lock()
		high := r.high
		r.fleet.mu.Unlock()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
		id, err := r.gen.NextContext(ctx)
		cancel()
		r.took(time.Since(begin))
		if err == nil {
			r.record(id, high)
		} else if r.ctx.Err() == nil {
			r.failed("call", err)
		}
	}
}

func (r *run) took(d time.Duration) {
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	r.fleet.report.Slowest = max(r.fleet.report.Slowest, d)
}

// pause waits for c, and reports whether the run goes on.
func (r *run) pause(c <-chan time.Time) bool {
	select {
	case <-c:
	case <-r.ctx.Done():
	}
	return r.ctx.Err() == nil
}

// Issued returns the number of IDs so far.
func (f *Fleet) Issued() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report.Issued
}

// Failed returns the number of errors so far that wrap a sentinel, by its name: see
// Report.Errors.
func (f *Fleet) Failed(sentinel string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind, count := range f.report.Errors {
		if strings.Contains(kind, sentinel) {
			n += count
		}
	}
	return n
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
	marks := make([]mark, f.config.Processes)
	for {
		waiting := ""
		f.mu.Lock()
		for i, r := range f.runs {
			m := &marks[i]
			if r.gen == nil {
				waiting = fmt.Sprintf("%v has not claimed: %v", r, r.last)
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
				waiting = fmt.Sprintf("%v has got %d grants: %v", r, got-m.grants, r.gen.Keeper().Err())
			case r.issued < m.issued+n:
				waiting = fmt.Sprintf("%v has issued %d of %d: %v", r, r.issued-m.issued, n, r.last)
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

// Close ends all processes, which release their node numbers, and returns what was seen. It
// is an error of the test if that takes more than a minute. A second call returns the
// same report.
func (f *Fleet) Close(t testing.TB) *Report {
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
			f.report.add(r.gen.Keeper().Stats())
			r.gen = nil
		}
	}
	return &f.report
}
