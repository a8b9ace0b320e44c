package lease_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// TestFleet runs processes that share node numbers, each on a clock that wanders,
// through everything that can happen to them and to their store. See fleet.
func TestFleet(t *testing.T) {
	fleettest.Test(t, 250, func(seed uint64) *fleet { return newFleet(seed, setup{}) })
}

// profiles have a fleet meet one fault of the catalogue, and no other: draw changes what was drawn, and
// check looks at the sums of all seeds.
var profiles = []struct {
	name  string
	draw  func(*fleet)
	check func(t *testing.T, sums map[string]int)
}{
	{"F14-skewed-fleet", func(f *fleet) {
		f.Skewed, f.PStore = true, 0
		f.Kinds = []fleettest.FaultKind{fleettest.StepHours, fleettest.StepLarge, fleettest.Kill, fleettest.Shutdown, fleettest.PauseAll, fleettest.Zombie}
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["losses"], "no fast clock took the number of a slow one")
	}},
	// The store is away, refuses, loses requests and answers, and takes late ones.
	{"F15-store-outage", func(f *fleet) {
		f.Kinds, f.Fates, f.PStore = []fleettest.FaultKind{fleettest.Partition, fleettest.Outage}, fleettest.AllFates(), 300
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["without a grant"])
		assert.Positive(t, sums["late writes"])
	}},
	// It is slow, but answers in time.
	{"F15-slow-store", func(f *fleet) {
		f.uncontested()
		f.PStore, f.Latency = 0, f.Period/40
	}, func(t *testing.T, sums map[string]int) {
		assert.Zero(t, sums["ended"], "grants ended")
		assert.Zero(t, sums["losses"], "processes lost their numbers")
	}},
	// Answers to writes are lost as well, since a keeper reads its cell only then.
	{"F21-stale-read", func(f *fleet) {
		f.uncontested()
		f.PStale, f.Fates, f.PStore = 200, []fleettest.Fate{fleettest.Unanswered}, 150
	}, func(t *testing.T, sums map[string]int) {
		assert.Positive(t, sums["stale reads"])
		// A number whose grant ended two windows ago is free, so another may take it: 13 of 113,398.
		assert.Less(t, 200*sums["losses"], sums["ended"], "processes lost their numbers")
		assert.Less(t, 9*sums["ended"], sums["issued"])
	}},
}

// uncontested has each process a number that no other wants.
func (f *fleet) uncontested() {
	f.Kinds, f.pinned, f.windows, f.longest, f.strict = nil, 0, false, f.Period, false
	f.count = min(f.count, int(f.numbers()))
}

// TestFleetUnder runs fleets that meet one fault only, on machines that are not held up and
// keep time, unless the fault says otherwise.
func TestFleetUnder(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			p.check(t, fleettest.Test(t, 80, func(seed uint64) *fleet { return newFleet(seed, setup{alone: p.draw}) }))
		})
	}
}

// fleet is one run of the simulation: machines with processes that hold leases and issue
// IDs, over one store, or those of some sites.
type fleet struct {
	*fleettest.Fleet
	plan
	checks

	all []*process // in the order of their start
	sites
	oldRows
}

// plan is drawn from a seed before the first step, beside what may go wrong.
type plan struct {
	layout  snowflake.Layout
	longest int64 // window of any process; most have the period
	windows bool  // they differ

	count      int    // machines
	locking    bool   // the store is a Locker
	strict     bool   // WithStrictFleetCheck
	pinned     uint64 // of 1024 processes: they want the number of their machine
	strategies []strategies.Strategy
	calls      []callKind

	setup
}

// setup is what a test asks for, beside what is drawn.
type setup struct {
	retries  bool         // mutant M9: a process asks for a cell's version anew after an unknown outcome, and goes by what it knew of the rest
	operated bool         // numbers are given to the past, and often moved to other stores
	alone    func(*fleet) // draws the faults of a profile, or nil
}

// Plan shows what was drawn.
func (f *fleet) Plan() string { return fmt.Sprintf("%+v %+v %+v", f.Chance, f.Load, f.plan) }

// newFleet makes the run of a seed.
func newFleet(seed uint64, is setup) *fleet {
	f := &fleet{Fleet: fleettest.New(seed)}
	f.setup = is
	f.drawSize()
	f.drawSites()
	f.Draw(f.count)
	f.locking, f.strict = f.Often(128), f.Often(32)
	if f.Often(160) {
		f.pinned = []uint64{512, 1024}[f.Rng.IntN(2)]
	}
	f.drawCallers()
	if f.Often(256) {
		f.PStale = 1 + f.Rng.Uint64N(256)
	}
	if f.alone != nil {
		f.Skewed, f.Slews, f.Stale, f.PPause, f.PDie, f.PStale = false, false, false, 0, 0, 0
		f.alone(f)
	}
	f.watch()
	f.Launch = f.launch
	for range f.count {
		f.Boot()
	}
	if f.stores > 1 {
		f.Kinds = slices.DeleteFunc(f.Kinds, func(k fleettest.FaultKind) bool { return k == fleettest.Rewind })
		f.MostProcesses += 30
		f.Boot() // that of the operator
		f.Boot() // those of archivists
		f.Boot()
	}
	return f
}

func (f *fleet) numbers() int64 { return 1 << f.layout.NodeBits }

func (f *fleet) drawSize() {
	f.layout = snowflake.Layout{Tick: time.Millisecond, TimeBits: 41, NodeBits: f.Rng.IntN(5), SequenceBits: f.Rng.IntN(5),
		Order: snowflake.Order(f.Rng.IntN(2)), Epoch: fleettest.Start.AddDate(-3, 0, 0)}
	if f.Often(256) { // streams take more than one slot at a time
		f.layout.SequenceBits += 4
	}
	f.count = 1 + f.Rng.IntN(int(f.numbers())+3)
	if f.Seed%1000 == 999 { // hundreds of processes
		f.layout.NodeBits = 7
		f.count = 100 + f.Rng.IntN(200)
	}
	f.MostProcesses = 3*f.count + 2
	ticks := int64(6) << f.Rng.IntN(6) // 6 to 192, and up to as many more
	ticks += f.Rng.Int64N(ticks)
	if f.Often(256) {
		f.layout.Tick = 10 * time.Millisecond
	}
	f.Period = ticks * int64(f.layout.Tick)
	f.longest = f.Period
	if f.Often(128) {
		f.windows = true
		f.longest = 2 * f.Period
	}
	windows := int64(4 + f.Rng.IntN(12))
	if f.count > 32 {
		windows = 4
	}
	f.Length, f.Room = windows*f.Period, int(f.numbers())
}

func (f *fleet) drawCallers() {
	w := time.Duration(f.Period)
	ages := strategies.BorrowUpTo(100 * time.Hour)
	f.strategies = some(f, strategies.Reject(), strategies.WaitUpTo(w/4), strategies.WaitUpTo(w), strategies.BorrowUpTo(w/2), ages,
		strategies.Chain(strategies.BorrowUpTo(w/8), strategies.WaitUpTo(w/2)), strategies.PerCause(strategies.Reject(), ages))
	f.calls = some(f, single, streamed, bounded)
	f.Issuers = 1 + f.Rng.IntN(3)
	f.PBurst = uint64(f.Rng.IntN(900))
	f.Think, f.Rest = f.Between(f.Period/128, f.Period/3)+2, f.Period/4
	f.Most = 200 + 100*min(f.count, 20)
}

// some draws some of all, at least one.
func some[T any](f *fleet, all ...T) []T {
	f.Rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+f.Rng.IntN(len(all))]
}

// Play runs a fleet to its end.
func (f *fleet) Play() {
	defer f.End()
	f.Chaos()
	for _, since := range []int64{f.bound(), f.longest} {
		f.Run(f.Now + f.bound())
		if !f.Over && f.stores == 1 {
			f.checkLiveness(since)
		}
	}
}
