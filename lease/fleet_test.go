package lease_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

var (
	oneSeed   = flag.Int64("fleet.seed", -1, "the one seed that each test of fleets is to run, with a trace")
	manySeeds = flag.Int("fleet.seeds", 0, "how many seeds each test of fleets is to run, or 0 for its usual number")
)

// TestFleet runs processes that share node numbers, each on a clock that wanders, through everything that can happen to
// them and to their store. See fleet.
func TestFleet(t *testing.T) { _, _ = testFleet(t, 250, setup{}) }

// profiles have a fleet meet one fault of the catalogue, and no other: draw changes what was drawn, and
// check looks at the sums of all seeds.
var profiles = []struct {
	name  string
	draw  func(*fleet)
	check func(t *testing.T, sums map[string]int)
}{
	{"F14-skewed-fleet", func(f *fleet) {
		f.skewed, f.pStore = true, 0
		f.kinds = []string{"hours", "step", "kill", "shutdown", "pause", "zombie"}
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["losses"], "no fast clock took the number of a slow one")
	}},
	// The store is away, refuses, loses requests and answers, and takes late ones.
	{"F15-store-outage", func(f *fleet) {
		f.kinds, f.fates, f.pStore = []string{"partition", "outage"}, allFates, 300
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["without a grant"])
		assert.Positive(t, sums["late writes"])
	}},
	// It is slow, but answers in time.
	{"F15-slow-store", func(f *fleet) {
		f.uncontested()
		f.pStore, f.latency = 0, f.period/40
	}, func(t *testing.T, sums map[string]int) {
		assert.Zero(t, sums["ended"], "grants ended")
		assert.Zero(t, sums["losses"], "processes lost their numbers")
	}},
	// Answers to writes are lost as well, since a keeper reads its cell only then.
	{"F21-stale-read", func(f *fleet) {
		f.uncontested()
		f.pStale, f.fates, f.pStore = 200, []string{"unanswered"}, 150
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["stale reads"])
		// A number whose grant ended two windows ago is free, so another may take it.
		assert.Less(t, 20*sums["losses"], sums["ended"], "processes lost their numbers")
		assert.Less(t, 9*sums["ended"], sums["issued"])
	}},
}

// uncontested has each process a number that no other wants.
func (f *fleet) uncontested() {
	f.kinds, f.pinned, f.windows, f.longest = nil, 0, false, f.period
	f.count = min(f.count, int(f.numbers()))
}

// TestFleetUnder runs fleets that meet one fault only, on machines that are not held up and
// keep time, unless the fault says otherwise.
func TestFleetUnder(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			if sums, usual := testFleet(t, 80, setup{alone: p.draw}); usual {
				p.check(t, sums)
			}
		})
	}
}

// testFleet runs seeds, and returns the sums of their tallies. usual says that these are as many as ever, or more: with
// -short, and with the race detector, which takes ten times as long, they are an eighth.
func testFleet(t *testing.T, seeds int, is setup) (sums map[string]int, usual bool) {
	from := uint64(max(*oneSeed, 0))
	info, _ := debug.ReadBuildInfo()
	few := testing.Short() || slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	switch {
	case *oneSeed >= 0:
		seeds = 1
	case *manySeeds > 0:
		seeds = *manySeeds
	case few:
		seeds /= 8
	}
	sums = map[string]int{}
	for seed := from; seed < from+uint64(seeds); seed++ {
		f := play(t, seed, is)
		for what, n := range f.tally {
			sums[what] += n
		}
		require.Empty(t, f.failures, "seed %d: %+v; go test ./lease -run '^%s$' -fleet.seed=%d -count=20 runs what is mostly the same", seed, f.plan, t.Name(), seed)
	}
	t.Logf("%d seeds: %v", seeds, sums)
	return sums, *oneSeed < 0 && !few
}

// play makes the run of a seed, and runs it to its end.
func play(t *testing.T, seed uint64, is setup) (f *fleet) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the same seed is mostly the same run
	synctest.Test(t, func(t *testing.T) {
		f = newFleet(t, seed, is)
		f.play()
	})
	return f
}

// fleet is one run: machines with processes that hold leases and issue IDs, over one store, or those of some sites. The
// processes are the real Keeper and the real Generator, with their goroutines, in the virtual time of package synctest,
// which is the true time of the run; each machine has a clock of its own. What goes wrong between two machine
// instructions is for the simulation of callers in internal/sim.
type fleet struct {
	*testing.T
	plan
	sites
	oldRows
	began time.Time
	work  sync.WaitGroup

	machines []*machine

	mu       sync.Mutex // guards what follows, and the fields of machines and processes
	rng      *rand.Rand
	calm     bool // the faults are over
	over     bool
	away     time.Time // until when the store is away
	all      []*process
	backup   func()                   // an older state of the store, or nil
	cells    map[string][]stores.Cell // the last states of each cell, by site and key
	ids      map[snowflake.ID]bool    // all that were issued
	made     int                      // so many by generators
	limits   map[[2]uint64]uint64     // by site and version of a cell
	undone   map[int64][][2]uint64    // by number: the ticks that were granted, and the store has lost since
	tally    map[string]int
	failures []string // promises that were broken
}

// plan is drawn from a seed before the first step.
type plan struct {
	layout  snowflake.Layout
	period  time.Duration // the window of most processes, by which all else is drawn
	longest time.Duration // of any process
	windows bool          // they differ
	length  time.Duration // of the faults

	count      int    // machines
	locking    bool   // the store is a Locker
	pinned     uint64 // of 1024 processes: they want the number of their machine
	strategies []strategies.Strategy
	calls      []string
	issuers    int    // of a process, at most
	pBurst     uint64 // of 1024: a call that follows at once
	think      time.Duration
	most       int // IDs, after which there are few calls

	kinds         []string // of faults
	faultEvery    time.Duration
	fates         []string // of calls of the store
	pStore        uint64   // of 1024 calls that go wrong
	pStale        uint64   // of 1024 reads: they are of an older state of the cell (F21)
	pPause        uint64   // of 1024 places at which a process, or a call of it, may be held up
	pDie          uint64   // of 4096, likewise
	latency       time.Duration
	skewed, slews bool // clocks

	setup
}

// setup is what a test asks for, beside what is drawn.
type setup struct {
	retries  bool         // mutant M9: a process asks for a cell's version anew after an unknown outcome, and goes by what it knew of the rest
	operated bool         // numbers are given to the past, and often moved to other stores
	alone    func(*fleet) // draws the faults of a profile, or nil
}

// allKinds are the faults of machines, their processes and the store, but for "rewind", which few runs have: since then
// some numbers may be issued twice. allFates are what may become of a call.
var (
	allKinds = []string{"small step", "step", "hours", "slew", "freeze", "suspend", "partition", "outage", "kill", "pause", "zombie", "shutdown", "restored"}
	allFates = []string{"refused", "lost", "unanswered", "late", "repeated", "retried"}
)

func newFleet(t *testing.T, seed uint64, is setup) *fleet {
	f := &fleet{T: t, began: time.Now(), rng: rand.New(rand.NewPCG(seed, 0)), cells: map[string][]stores.Cell{}, ids: map[snowflake.ID]bool{},
		limits: map[[2]uint64]uint64{}, undone: map[int64][][2]uint64{}, tally: map[string]int{}}
	f.setup = is
	f.drawSize()
	f.drawSites()
	f.drawFaults()
	f.drawCallers()
	if f.alone != nil {
		f.skewed, f.slews, f.pPause, f.pDie, f.pStale = false, false, 0, 0, 0
		f.alone(f)
	}
	all := f.count
	if f.operated {
		f.kinds = slices.DeleteFunc(f.kinds, func(kind string) bool { return kind == "rewind" })
		all += 3 // that of the operator, and those of archivists
	}
	for range all {
		f.boot()
	}
	return f
}

func (f *fleet) numbers() int64 { return 1 << f.layout.NodeBits }

func (f *fleet) drawSize() {
	f.layout = snowflake.Layout{Tick: time.Millisecond, TimeBits: 41, NodeBits: f.rng.IntN(5), SequenceBits: f.rng.IntN(5),
		Order: snowflake.Order(f.rng.IntN(2)), Epoch: noon.AddDate(-3, 0, 0)}
	if f.often(256) { // streams take more than one slot at a time
		f.layout.SequenceBits += 4
	}
	f.count = 1 + f.rng.IntN(int(f.numbers())+3)
	ticks := 6 << f.rng.IntN(6) // 6 to 192, and up to as many more
	ticks += f.rng.IntN(ticks)
	if f.often(256) {
		f.layout.Tick = 10 * time.Millisecond
	}
	f.period = time.Duration(ticks) * f.layout.Tick
	f.longest = f.period
	if f.often(128) {
		f.windows = true
		f.longest = 2 * f.period
	}
	f.length = time.Duration(4+f.rng.IntN(12)) * f.period
}

// drawFaults draws what may go wrong. The kinds of faults are drawn first: where all are at work at once, few of
// the rarer cases come about.
func (f *fleet) drawFaults() {
	f.skewed, f.slews = f.often(640), f.often(512)
	f.faultEvery = f.between(f.period/8, 2*f.period) / time.Duration(min(f.count, 4))
	half := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(string) bool { return f.often(512) })
	}
	if f.kinds = half(allKinds); f.often(64) {
		f.kinds = append(f.kinds, "rewind")
	}
	if f.latency = f.between(2, f.period/16); f.often(256) {
		f.latency = f.between(2, f.period)
	}
	if f.often(768) {
		f.fates, f.pStore = half(allFates), 1+f.rng.Uint64N(400)
	}
	if f.often(256) {
		f.pStale = 1 + f.rng.Uint64N(256)
	}
	if f.often(640) {
		f.pPause = 1 + f.rng.Uint64N(24)
	}
	if f.often(256) {
		f.pDie = 1 + f.rng.Uint64N(24)
	}
	f.locking = f.often(128)
	if f.often(160) {
		f.pinned = []uint64{512, 1024}[f.rng.IntN(2)]
	}
}

func (f *fleet) drawCallers() {
	w := f.period
	ages := strategies.BorrowUpTo(100 * time.Hour)
	f.strategies = some(f, strategies.Reject(), strategies.WaitUpTo(w/4), strategies.WaitUpTo(w), strategies.BorrowUpTo(w/2), ages,
		strategies.Chain(strategies.BorrowUpTo(w/8), strategies.WaitUpTo(w/2)), strategies.PerCause(strategies.Reject(), ages))
	f.calls = some(f, "single", "streamed", "bounded")
	f.issuers = 1 + f.rng.IntN(3)
	f.pBurst = uint64(f.rng.IntN(900))
	f.think = f.between(w/128, w/3) + 2
	f.most = 200 + 100*min(f.count, 20)
}

// some draws some of all, at least one.
func some[T any](f *fleet, all ...T) []T {
	f.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+f.rng.IntN(len(all))]
}

// between draws from low up to high.
func (f *fleet) between(low, high time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return low + time.Duration(f.rng.Int64N(int64(max(high-low, 1))))
}

// often is true in n of 1024 cases.
func (f *fleet) often(n uint64) bool { return uint64(f.between(0, 1024)) < n }

// pickOf draws one of a list.
func pickOf[T any](f *fleet, list []T) T { return list[f.between(0, time.Duration(len(list)))] }

// is reads a field that mu guards.
func is[T any](f *fleet, field *T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *field
}

// counts adds to the tally.
func (f *fleet) counts(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally[what] += n
}

// fail notes a broken promise, the first of its kind. The caller does not hold mu.
func (f *fleet) fail(what, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.failures, func(before string) bool { return strings.HasPrefix(before, what+": ") }) {
		f.failures = append(f.failures, what+": "+fmt.Sprintf(format, args...))
	}
}

// tracef logs the one seed that is to be run.
func (f *fleet) tracef(format string, args ...any) {
	if *oneSeed >= 0 {
		f.Logf("%12s  %s", time.Since(f.began), fmt.Sprintf(format, args...))
	}
}

// Write is that of the log of processes, line by line.
func (f *fleet) Write(line []byte) (int, error) {
	f.tracef("%s", line)
	return len(line), nil
}

func (f *fleet) log(name string) *slog.Logger {
	if *oneSeed < 0 {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(f, nil)).With("process", name)
}

// later does something when d has passed.
func (f *fleet) later(d time.Duration, do func()) {
	f.work.Go(func() {
		time.Sleep(d)
		do()
	})
}

// play runs a fleet to its end.
func (f *fleet) play() {
	end := make(chan struct{})
	var clocks sync.WaitGroup
	clocks.Go(func() { f.ticks(end) })
	for i, m := range f.machines {
		switch {
		case i < f.count:
			f.work.Go(func() { f.runs(m) })
		case i == f.count:
			f.work.Go(func() { f.operate(m) })
		default:
			f.work.Go(func() { f.archive(m) })
		}
	}
	f.work.Go(f.deliver)
	if len(f.kinds) > 0 {
		f.work.Go(f.faults)
	}
	time.Sleep(f.length)
	f.settle()
	time.Sleep(2 * f.bound())
	f.mu.Lock()
	f.over = true
	all := slices.Clone(f.all)
	f.mu.Unlock()
	for _, p := range all {
		if k := is(f, &p.k); k != nil {
			if !f.operated {
				f.checkLiveness(p)
			}
			f.counts("losses", int(k.Stats().Conflicts))
		}
		p.end()
	}
	f.work.Wait()
	close(end)
	clocks.Wait()
}

// deliver lets late writes arrive.
func (f *fleet) deliver() {
	for !is(f, &f.over) {
		time.Sleep(f.between(0, f.period))
		for _, store := range f.stores {
			for n := len(store.Late()); n > 0 && (is(f, &f.calm) || f.often(512)); n-- {
				f.counts("late writes", 1)
				store.Deliver(int(f.between(0, time.Duration(n))))
			}
		}
	}
}

// machine has a clock that wanders, and a process, or none at the moment.
type machine struct {
	id    int
	clock *clocktest.Virtual
	rate  int       // of its clock, of 1024
	cut   time.Time // until when the store cannot be reached
	p     *process  // the last to be started
}

const rateOne = 1024

// boot adds a machine and draws its clock.
func (f *fleet) boot() {
	skew := time.Duration(0)
	switch {
	case f.skewed && f.often(512):
		skew = f.between(-4, 5) * time.Hour
	case f.skewed:
		skew = f.between(-3*f.period, 3*f.period)
	}
	m := &machine{id: len(f.machines), clock: clocktest.NewVirtual(noon.Add(skew)), rate: rateOne}
	if f.slews {
		m.rate = f.rate()
	}
	f.machines = append(f.machines, m)
}

// rate draws how fast a clock goes: from half to twice.
func (f *fleet) rate() int { return int(f.between(rateOne/2, 2*rateOne)) }

// ticks lets the clocks of all machines go on, in steps of half a tick.
func (f *fleet) ticks(end chan struct{}) {
	for step := f.layout.Tick / 2; ; {
		select {
		case <-end:
			return
		case <-time.After(step):
		}
		for _, m := range f.machines {
			m.clock.Advance(step * time.Duration(is(f, &m.rate)) / rateOne)
		}
	}
}

// faults has something happen to a machine, or to all of them, from time to time.
func (f *fleet) faults() {
	for time.Sleep(f.between(1, 2*f.faultEvery)); !is(f, &f.calm); time.Sleep(f.between(1, 2*f.faultEvery)) {
		f.fault(pickOf(f, f.kinds), pickOf(f, f.machines))
	}
}

func (f *fleet) fault(kind string, m *machine) {
	f.counts("faults", 1)
	f.tracef("machine %d: %s", m.id, kind)
	w, p := f.period, is(f, &m.p)
	until := time.Now().Add(f.between(0, 5*w))
	ready := p != nil && !is(f, &p.dead) && is(f, &p.k) != nil
	switch kind {
	case "small step":
		m.clock.Step(f.between(-w/4, w/4))
	case "step":
		m.clock.Step(f.between(-5*w, 5*w))
	case "hours":
		m.clock.Step(f.between(-5, 6)*time.Hour + f.between(-w, w))
	case "slew":
		m.set(f, f.rate())
	case "freeze":
		m.clock.Freeze(f.between(0, 4*w))
	case "suspend": // nothing runs, and elapsed time stands still
		d := f.between(0, 4*w)
		m.set(f, 0)
		m.stop(f, time.Now().Add(d))
		f.later(d, func() {
			m.clock.Suspend(d)
			m.set(f, rateOne)
		})
	case "partition":
		f.mu.Lock()
		m.cut = until
		f.mu.Unlock()
	case "outage":
		f.mu.Lock()
		f.away = until
		f.mu.Unlock()
	case "kill":
		if p != nil {
			p.end()
		}
	case "pause":
		m.stop(f, until)
	case "zombie": // it is thought dead, replaced, and wakes again
		if ready {
			p.stop(until)
			p.leave()
		}
	case "shutdown":
		if ready {
			f.work.Go(p.shutdown)
		}
	case "restored":
		if ready {
			f.work.Go(func() { _ = p.k.Restored(p.ctx) })
		}
	case "rewind":
		f.rewind()
	}
}

// set changes how fast the clock goes.
func (m *machine) set(f *fleet, rate int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.calm || rate == rateOne {
		m.rate = rate
	}
}

// stop stops all processes of a machine.
func (m *machine) stop(f *fleet, until time.Time) {
	f.mu.Lock()
	all := slices.Clone(f.all)
	f.mu.Unlock()
	for _, p := range all {
		if p.m == m {
			p.stop(until)
		}
	}
}

// rewind brings the cells of a backup back. Of the grants since, each process that holds one has it
// still, but the store knows nothing of it, and may grant it a second time.
func (f *fleet) rewind() {
	store := f.stores[0]
	if f.backup != nil {
		f.counts("rewinds", 1)
		f.mu.Lock()
		was := map[int64]uint64{}
		for node := range f.numbers() {
			was[node] = f.limit(0, node)
		}
		f.backup()
		for node, limit := range was {
			f.undone[node] = append(f.undone[node], [2]uint64{f.limit(0, node), limit})
		}
		f.mu.Unlock()
	}
	f.backup = store.Snapshot()
}

// limit is that in the cell of a number, or 0 if there is none. The caller holds mu.
func (f *fleet) limit(site int, node int64) uint64 {
	found := f.stores[site].Peek(cell.NodeKey(node))
	write := [2]uint64{uint64(site), found.Version}
	limit, known := f.limits[write]
	if !known {
		r, _ := cell.DecodeNode(found.Value)
		limit = r.Limit
		f.limits[write] = limit
	}
	return limit
}

// settle ends all faults. Clocks go on from where they are, which may be hours apart.
func (f *fleet) settle() {
	f.tracef("--- the faults are over ---")
	f.mu.Lock()
	f.calm, f.away, f.latency = true, time.Time{}, f.period/64+2
	var alive []*process
	for _, m := range f.machines {
		m.cut, m.rate = time.Time{}, rateOne
		m.clock.Freeze(0)
	}
	for _, p := range f.all {
		if p.stopped = (time.Time{}); !p.dead && p.m.id < f.count {
			alive = append(alive, p)
		}
	}
	f.mu.Unlock()
	for _, p := range alive[:max(len(alive)-int(f.numbers()), 0)] {
		p.end() // one too many
	}
}

// bound is within what time everybody who can issues again once the faults are over: five windows. A request that
// was lost times out within one. A process that gave up then is started anew within half a one. The number of one who
// died is free two windows after it was first looked at. The rest is for what the strategy may wait.
func (f *fleet) bound() time.Duration { return 5 * f.longest }

// way is a process's way to its store.
type way struct {
	*storetest.Memory
	p    *process
	site int // that has the store
}

// before is a call on its way there.
func (w *way) before(ctx context.Context, op storetest.Op) storetest.Fault {
	p, f := w.p, w.p.f
	if is(f, &p.dead) {
		return storetest.Unavailable
	}
	p.hiccup()
	w.travel(ctx)
	now := time.Now()
	fate := "served"
	switch lost := now.Before(is(f, &f.away)) || now.Before(is(f, &p.m.cut)); {
	case is(f, &f.calm):
	case is(f, &p.dead):
		fate = "late" // it has sent this
	case lost:
		fate = pickOf(f, []string{"refused", "lost", "late"})
	case f.meets("refused", "lost", "unanswered", "late"):
		fate = pickOf(f, f.fates)
	}
	f.tracef("%s: %v %s %d %s: %s", p.name, op.Kind, op.Key, op.Version, op.Value, fate)
	switch fate {
	case "refused":
		return storetest.Unavailable
	case "lost":
		<-ctx.Done()
		return storetest.Unavailable
	case "unanswered":
		return storetest.ReplyLost
	case "late": // it comes when its sender waits for it no more
		<-ctx.Done()
		return storetest.Delayed
	}
	return storetest.None
}

// after is the way back.
func (w *way) after(ctx context.Context, _ storetest.Op) {
	w.travel(ctx)
	w.p.hiccup()
}

// travel takes the time of a way.
func (w *way) travel(ctx context.Context) {
	select {
	case <-time.After(w.p.f.between(1, is(w.p.f, &w.p.f.latency))):
	case <-ctx.Done():
	}
}

// meets draws whether a call meets one of these fates.
func (f *fleet) meets(fates ...string) bool {
	return !is(f, &f.calm) && slices.ContainsFunc(fates, func(x string) bool { return slices.Contains(f.fates, x) }) && f.often(f.pStore)
}

// Read may be of an earlier state.
func (w *way) Read(ctx context.Context, key string) (stores.Cell, error) {
	found, err := w.Memory.Read(ctx, key)
	if err == nil {
		found = w.stale(found)
	}
	return found, err
}

// List may have earlier states of some cells.
func (w *way) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	found, err := w.Memory.List(ctx, from, to, limit)
	for i := range found {
		if c := w.stale(found[i]); c.Version > 0 {
			found[i] = c
		}
	}
	return found, err
}

// stale returns a cell that was read, or sometimes one of its last states.
func (w *way) stale(found stores.Cell) stores.Cell {
	f := w.p.f
	if states := f.states(w, found); len(states) > 1 && !is(f, &f.calm) && f.often(f.pStale) {
		f.counts("stale reads", 1)
		return pickOf(f, states[:len(states)-1])
	}
	return found
}

// states notes a state of a cell, and returns the last ones.
func (f *fleet) states(w *way, found stores.Cell) []stores.Cell {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprint(w.site, found.Key)
	all := f.cells[key]
	if len(all) == 0 || all[len(all)-1].Version != found.Version {
		all = append(all[max(len(all)-12, 0):len(all):len(all)], found)
		f.cells[key] = all
	}
	return all
}

// Swap is sometimes carried out twice: at once, by a driver that tells of the second time alone, or later.
func (w *way) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := w.Memory.Swap(ctx, key, version, value)
	if err != nil {
		return now, err
	}
	f := w.p.f
	f.states(w, stores.Cell{Key: key, Version: now, Value: value})
	again := func() (uint64, error) { return w.Client().Swap(context.WithoutCancel(ctx), key, version, value) }
	switch {
	case f.meets("retried"):
		return again()
	case f.meets("repeated"):
		f.later(f.between(0, 4*f.period), func() { _, _ = again() })
	}
	return now, nil
}

// lockingWay is one to a store with locks.
type lockingWay struct{ *way }

func (w lockingWay) Traits() stores.Traits { return w.Locking().Traits() }
