package lease_test

import (
	"math/rand/v2"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// plan is what a seed makes of a run, before the first step.
type plan struct {
	layout  snowflake.Layout
	period  int64 // the window, of most processes
	longest int64 // that of any
	windows bool  // they differ

	count         int // machines
	mostProcesses int
	skewed, slews bool
	locking       bool // the store is a Locker
	strict        bool // of WithFleetCheck
	pinned        pinning
	strategies    []strategies.Strategy

	issuers int // of a process, at most
	calls   []callKind
	batch   int
	pBurst  uint64 // of 1024: a call that follows at once
	think   int64  // before each of the others, at most
	most    int    // IDs, after which there are few

	chaos      int64 // how long the faults go on
	faultEvery int64
	kinds      []faultKind
	pStore     uint64 // of 1024: requests that go wrong
	fates      []fate
	pPause     uint64 // of 1024 places at which a thread may be held up
	pDie       uint64 // of 4096, likewise
	latency    int64  // of a way to the store or back, at most
	stale      bool   // listings are out of date
	away       int64  // true time until which the store is away

	mutant *mutant // or nil
}

// tally is what happened in a run.
type tally struct {
	threads, issues, refusals, grantErrors, grants, requests int
	pauses, faults, crashes, zombies, shutdowns, lateWrites  int
	restores, rewinds, wentBack, repeats                     int
	calmSince                                                int64
	live                                                     int
	excused                                                  map[string]int
}

type pinning uint8

const (
	pinnedNone pinning = iota
	pinnedSome
	pinnedAll
)

type faultKind uint8

const (
	stepSmall faultKind = iota
	stepLarge
	stepHours
	slew
	freeze
	suspend
	partition
	outage
	kill
	pauseAll
	zombie
	shutdown
	restored // the memory of a process was, as far as it is told
	faultKinds
	rewind // the store goes back: in few runs, since then some IDs may be issued twice
)

// fleetStart is the true time at which every run starts.
var fleetStart = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// newFleet makes the run of a seed. What kinds of faults there are is drawn first:
// where all are at work at once, few of the rarer cases come about.
func newFleet(seed uint64, m *mutant) *fleet {
	f := &fleet{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x666c656574))}
	f.mutant = m
	f.drawSize()
	f.drawFaults()
	f.drawCallers()
	f.excused = map[string]int{}
	f.ids = make(map[snowflake.ID]struct{}, 1024)
	n := f.numbers()
	f.granted, f.stamped, f.undone = make([][]span, n), make([]uint64, n), make([][]span, n)
	f.store = newVirtualStore(f)
	for i := range f.count {
		f.machines = append(f.machines, f.bootstrap(i))
	}
	return f
}

func (f *fleet) numbers() int64 { return 1 << f.layout.NodeBits }

func (f *fleet) drawSize() {
	f.layout = snowflake.Layout{Tick: time.Millisecond, TimeBits: 41, NodeBits: f.rng.IntN(5), SequenceBits: f.rng.IntN(5),
		Order: snowflake.Order(f.rng.IntN(2)), Epoch: fleetStart.AddDate(-3, 0, 0)}
	if f.often(256) { // streams take more than one slot at a time
		f.layout.SequenceBits += 4
	}
	n := int(f.numbers())
	f.count = 1 + f.rng.IntN(n+3)
	if f.seed%1000 == 999 { // hundreds of processes
		f.layout.NodeBits = 7
		f.count = 100 + f.rng.IntN(200)
	}
	f.mostProcesses = 3*f.count + 2
	ticks := int64(6) << f.rng.IntN(6) // 6 to 192, and up to as many more
	ticks += f.rng.Int64N(ticks)
	if f.often(256) {
		f.layout.Tick = 10 * time.Millisecond
	}
	f.period = ticks * int64(f.layout.Tick)
	f.longest = f.period
	if f.often(128) {
		f.windows = true
		f.longest = 2 * f.period
	}
	windows := int64(4 + f.rng.IntN(12))
	if f.count > 32 {
		windows = 4
	}
	f.chaos = windows * f.period
	switch r := f.rng.IntN(32); r {
	case 0: // time ends in the course of the run
		f.layout.TimeBits = 20
		left := time.Duration(f.between(2*f.period, f.chaos+f.period))
		f.layout.Epoch = fleetStart.Add(left - f.layout.Tick<<20)
	case 1: // a clock may go back to before the epoch
		f.layout.Epoch = fleetStart.Add(-time.Duration(f.between(1, 3*f.period)))
	}
}

// endsEarly reports whether time ends in the course of the run.
func (f *fleet) endsEarly() bool { return f.layout.TimeBits < 41 }

func (f *fleet) drawFaults() {
	f.skewed, f.slews, f.stale = f.often(640), f.often(512), f.often(384)
	f.faultEvery = f.between(f.period/8, 2*f.period) / int64(min(f.count, 4))
	for kind := range faultKinds {
		if f.often(512) {
			f.kinds = append(f.kinds, kind)
		}
	}
	if f.often(64) {
		f.kinds = append(f.kinds, rewind)
	}
	if f.mutant != nil {
		f.kinds = append(f.kinds, f.mutant.faults...)
	}
	f.latency = f.between(2, f.period/16)
	if f.often(256) {
		f.latency = f.between(2, f.period)
	}
	if f.often(768) {
		for x := refused; x <= retried; x++ {
			if f.often(512) {
				f.fates = append(f.fates, x)
			}
		}
		if len(f.fates) > 0 {
			f.pStore = uint64(f.between(1, 400))
		}
	}
	if f.often(640) {
		f.pPause = uint64(f.between(1, 24))
	}
	if f.often(256) {
		f.pDie = uint64(f.between(1, 24))
	}
	if f.count > 32 {
		f.pPause, f.pDie = min(f.pPause, 2), min(f.pDie, 2)
	}
	f.locking = f.often(128)
	f.strict = f.often(32)
	if f.often(160) {
		f.pinned = pinnedSome + pinning(f.rng.IntN(2))
	}
}

func (f *fleet) drawCallers() {
	w := time.Duration(f.period)
	all := []strategies.Strategy{
		strategies.Reject(), strategies.WaitUpTo(w / 4), strategies.WaitUpTo(w), strategies.BorrowUpTo(f.layout.Tick), strategies.BorrowUpTo(w / 2),
		strategies.BorrowUpTo(3 * w), strategies.BorrowUpTo(100 * time.Hour), strategies.Chain(strategies.BorrowUpTo(w/8), strategies.WaitUpTo(w/2)),
		strategies.PerCause(strategies.WaitUpTo(w/2), strategies.Reject()), strategies.PerCause(strategies.Reject(), strategies.BorrowUpTo(100*time.Hour)),
	}
	for _, s := range all {
		if f.often(384) {
			f.strategies = append(f.strategies, s)
		}
	}
	if len(f.strategies) == 0 {
		f.strategies = append(f.strategies, strategies.BorrowUpTo(100*time.Hour))
	}
	for kind := single; kind <= bounded; kind++ {
		if f.often(512) {
			f.calls = append(f.calls, kind)
		}
	}
	if len(f.calls) == 0 {
		f.calls = append(f.calls, single)
	}
	f.issuers = 1 + f.rng.IntN(3)
	f.batch = 1 + f.rng.IntN(64)
	f.pBurst = uint64(f.rng.IntN(900))
	f.think = f.between(f.period/128, f.period/3) + 2
	f.most = 200 + 100*min(f.count, 20)
}
