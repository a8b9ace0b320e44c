package engines

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
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
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
	Open func(ctx context.Context) (stores.Store, error)

	Window, Timeout time.Duration // of the leases, and of an operation of the store
	Offset          time.Duration // of the clocks at the start
	IDs             *fleet.Ledger // of what is issued; nil is a new one
	From, To        int64         // the numbers of its site, of 0 to 7; 0 to 0 are all, of as many as the processes need
}

// A call of NextContext may take callTimeout. It has failed if it takes longer than
// callLimit.
const (
	callTimeout = time.Second
	callLimit   = 20 * time.Second
	callPause   = 5 * time.Millisecond
	startLimit  = 5 * time.Second // of one try to open the store and to claim
)

// Fleet issues IDs under load while the test does something to the servers of the store.
// A process is a keeper with a generator and two goroutines that call NextContext again and
// again, on a store and a wall clock of its own. The processes of even numbers read that
// wall clock; those of odd numbers read it through a [monoclock.Clock]. When a clock is
// behind, they borrow. There are few more node numbers than processes, so that new processes
// use the numbers of crashed processes.
//
// Its methods are for the goroutine of the test, which they may end.
type Fleet struct {
	FleetConfig
	*fleet.Verdict
	Layout snowflake.Layout

	clocks []*wallClock
	runs   []*run // the present run of each process
	count  int    // of runs
	logged program.Output

	ctx    context.Context // ends when the fleet is closed
	cancel context.CancelFunc
	living sync.WaitGroup
	began  time.Time

	mu       sync.Mutex    // of all below
	stats    lease.Stats   // the sums of the keepers that were closed
	failures map[error]int // by the sentinels that they wrap
}

// run is a process between its start and its crash.
type run struct {
	fleet   *Fleet
	process int
	name    string
	ctx     context.Context
	cancel  context.CancelFunc
	keeper  atomic.Pointer[lease.Keeper] // nil until the claim
	issued  atomic.Int64
	last    error // of a start or a call; under the fleet's lock
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
// process has issued an ID.
func StartFleet(t testing.TB, config FleetConfig) *Fleet {
	t.Helper()
	if config.IDs == nil {
		config.IDs = new(fleet.Ledger)
	}
	f := &Fleet{FleetConfig: config, Verdict: fleet.NewVerdict(t.Name()), Layout: snowflake.Default(), began: time.Now(), runs: make([]*run, config.Processes), failures: map[error]int{}}
	f.Layout.NodeBits = bits.Len(uint(config.Processes))
	if f.To > 0 {
		f.Layout.NodeBits = 3
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		f.close()
		if t.Failed() {
			t.Logf("the keepers have logged:\n%s", &f.logged)
		}
	})
	for i := range config.Processes {
		f.clocks = append(f.clocks, &wallClock{began: f.began})
		f.Step(config.Offset, i)
		f.start(i)
	}
	f.WaitIssued(t, 1)
	return f
}

// Step steps the wall clocks of some processes, or of all if none is named.
func (f *Fleet) Step(d time.Duration, processes ...int) {
	for _, i := range processes {
		f.clocks[i].offset.Add(int64(d))
	}
	if len(processes) == 0 {
		for _, c := range f.clocks {
			c.offset.Add(int64(d))
		}
	}
}

// Crash ends a process without a release: its store is closed first, and sends nothing more. Then
// it starts the process again, and does not wait until it has claimed.
func (f *Fleet) Crash(process int) {
	f.runs[process].cancel()
	f.start(process)
}

// start starts a run of a process.
func (f *Fleet) start(process int) {
	f.count++
	r := &run{fleet: f, process: process}
	r.name = fmt.Sprintf("process %d of the fleet of %s, run %d of all", process, f.began.Format("15:04:05.000"), f.count)
	r.ctx, r.cancel = context.WithCancel(f.ctx)
	f.runs[process] = r
	f.living.Go(r.live)
}

// live opens the store, claims, lets the callers issue IDs until the run ends, and closes.
func (r *run) live() {
	f := r.fleet
	store, gen, err := r.open()
	for ; err != nil; store, gen, err = r.open() {
		r.failed("start", err)
		if !r.pause(50 * time.Millisecond) {
			return
		}
	}
	r.keeper.Store(gen.Keeper())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { r.call(gen) })
	}
	calls.Wait()
	if f.ctx.Err() == nil { // it has crashed
		_, _ = store.Close(), gen.Close()
	} else if err := errors.Join(gen.Close(), store.Close()); err != nil && !errors.Is(err, lease.ErrNotReleased) {
		r.failed("close", err)
	}
	s := gen.Keeper().Stats()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Claims += s.Claims
	f.stats.Extensions += s.Extensions
	f.stats.Conflicts += s.Conflicts
	f.stats.Failures += s.Failures
	f.stats.WentBack += s.WentBack
}

// open opens the store and claims. After an error, it leaves nothing behind.
func (r *run) open() (stores.Store, *generator.Generator, error) {
	f := r.fleet
	ctx, cancel := context.WithTimeout(r.ctx, startLimit)
	defer cancel()
	store, err := f.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	var clock monoclock.Interface = f.clocks[r.process]
	if r.process%2 == 1 {
		clock = monoclock.New(monoclock.WithSource(f.clocks[r.process]))
	}
	log := slog.New(slog.NewTextHandler(&f.logged, nil)).With("run", r.name)
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(f.Layout), lease.WithClock(clock), lease.WithOwner(r.name),
		lease.WithWindow(f.Window), lease.WithTimeout(f.Timeout), lease.WithLogger(log))
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.BorrowUpTo(24*time.Hour)))
	if err != nil {
		return nil, nil, errors.Join(err, keeper.Close(), store.Close())
	}
	return store, gen, nil
}

// call issues IDs until the run ends.
func (r *run) call(gen *generator.Generator) {
	for r.pause(callPause) {
		begin := time.Since(r.fleet.began)
		ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
		id, err := gen.NextContext(ctx)
		cancel()
		end := time.Since(r.fleet.began)
		if end-begin > callLimit {
			r.fleet.Break(fleet.Ending, "%s: a call of %v took %v", r.name, callTimeout, end-begin)
		}
		if err == nil {
			if node := int64(id) >> r.fleet.Layout.SequenceBits & r.fleet.Layout.MaxNode(); r.fleet.To > 0 && (node < r.fleet.From || node > r.fleet.To) {
				r.fleet.Break(fleet.Sited, "%s: %d", r.name, node)
			}
			r.fleet.IDs.Add(r.name, int64(begin), int64(end), int64(id))
			r.issued.Add(1)
		} else if r.ctx.Err() == nil {
			r.failed("call", err)
		}
	}
}

// pause waits, and reports whether the run goes on.
func (r *run) pause(d time.Duration) bool {
	fleet.Pause(r.ctx, d)
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
		f.Break(fleet.Known, "%s, %s: %v", r.name, what, err)
	}
}

// WaitFailed waits until there are n more errors that wrap generator.ErrNotGranted or lease.ErrMoved.
func (f *Fleet) WaitFailed(t testing.TB, sentinel error, n int) {
	t.Helper()
	failed := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.failures[sentinel]
	}
	before := failed()
	Until(t, func(context.Context) error {
		if got := failed() - before; got < n {
			return fmt.Errorf("%d more calls of %d have failed with %q", got, n, sentinel)
		}
		return nil
	})
}

// WaitIssued waits until each process has issued n more IDs.
func (f *Fleet) WaitIssued(t testing.TB, n int64) {
	t.Helper()
	f.wait(t, "IDs", n, func(r *run) int64 { return r.issued.Load() })
}

// WaitRecovered waits until each process has got two grants, of which the store has
// acknowledged the second after the call, and then has issued more IDs. So the IDs are not those of a
// grant from before. It logs what the fleet has recovered from, and how long that took.
func (f *Fleet) WaitRecovered(t testing.TB, what string) {
	t.Helper()
	begin := time.Now()
	f.wait(t, "grants", 2, func(r *run) int64 {
		if r.keeper.Load() == nil {
			return 0
		}
		stats := r.keeper.Load().Stats()
		return int64(stats.Claims + stats.Extensions)
	})
	f.WaitIssued(t, 10)
	t.Logf("%s: recovered after %v", what, time.Since(begin))
}

// wait waits until a count of each process is larger by n.
func (f *Fleet) wait(t testing.TB, what string, n int64, count func(*run) int64) {
	t.Helper()
	var before []int64
	for _, r := range f.runs {
		before = append(before, count(r))
	}
	for i, r := range f.runs {
		Until(t, func(context.Context) error {
			if got := count(r) - before[i]; got < n {
				f.mu.Lock()
				defer f.mu.Unlock()
				return fmt.Errorf("%s has got %d of %d %s: %v", r.name, got, n, what, r.last)
			}
			return nil
		})
	}
}

// close ends all processes, which release their node numbers.
func (f *Fleet) close() {
	f.cancel()
	f.living.Wait()
}

// Check closes the fleet and fails the test unless it worked as with a store that loses nothing: no ID came
// twice, no store went back, and all that CheckCalls says.
func (f *Fleet) Check(t testing.TB) {
	t.Helper()
	f.close()
	n, example := f.IDs.Twice()
	f.Note(fleet.Unique, n, example)
	f.Note(fleet.Stands, int64(f.stats.WentBack), "a keeper has seen it")
	f.CheckCalls(t)
}

// CheckCalls closes the fleet and fails the test unless the IDs of each run ascend, each call has ended in
// time, and each failed call had no grant or a clock that had gone back. It returns the sums of all keepers' counts.
func (f *Fleet) CheckCalls(t testing.TB) lease.Stats {
	t.Helper()
	f.close()
	n, _ := f.IDs.Count()
	t.Logf("%d IDs; %+v; errors: %v", n, f.stats, f.failures)
	n, example := f.IDs.Disorder(true)
	f.Note(fleet.InOrder, n, example)
	for _, b := range f.Broken() {
		t.Errorf("broken: %s, %d times: %s", b.Promise, b.Count, strings.Join(b.Examples, "; "))
	}
	return f.stats
}
