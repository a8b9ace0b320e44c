package lease_test

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// fleet is one run of the simulation: machines with processes that hold leases and issue
// IDs, over one store.
type fleet struct {
	*fleettest.Fleet
	plan
	checks
	tally

	all   []*process // in the order of their start
	locks map[string]*lockToken
}

// plan is drawn from a seed before the first step, beside what may go wrong.
type plan struct {
	layout  snowflake.Layout
	longest int64 // window of any process; most have the period
	windows bool  // they differ

	count      int  // machines
	locking    bool // the store is a Locker
	strict     bool // of WithFleetCheck
	pinned     pinning
	strategies []strategies.Strategy

	issuers int // of a process, at most
	calls   []callKind
	batch   int
	pBurst  uint64 // of 1024: a call that follows at once
	think   int64  // before each of the others, at most
	most    int    // IDs, after which there are few

	mutant *mutant // or nil
}

// Plan shows what was drawn.
func (f *fleet) Plan() string { return fmt.Sprintf("%+v %+v", f.Chance, f.plan) }

// tally has the counts of a run.
type tally struct {
	Issues, Refusals, GrantErrors, Grants int
	Shutdowns, Restores, Repeats          int
	WentBack, Trusted                     int
	Live, Losses, Ended                   int
	Excused                               map[string]int
}

type pinning uint8

const (
	pinnedNone pinning = iota
	pinnedSome
	pinnedAll
)

// newFleet makes the run of a seed. Both m and alone, which draws the faults of a profile, may
// be nil.
func newFleet(seed uint64, m *mutant, alone func(*fleet)) *fleet {
	f := &fleet{Fleet: fleettest.New(seed)}
	f.mutant = m
	f.drawSize()
	var more []fleettest.FaultKind
	if m != nil {
		more = m.faults
	}
	f.Draw(f.count, more...)
	f.drawLeases()
	f.drawCallers()
	f.Excused = map[string]int{}
	f.ids = make(map[snowflake.ID]struct{}, 1024)
	n := f.numbers()
	f.stamped, f.undone = make([]uint64, n), make([][][2]uint64, n)
	f.limits, f.locks = make([]uint64, n), map[string]*lockToken{}
	if f.Often(256) {
		f.PStale = 1 + f.Rng.Uint64N(256)
	}
	if alone != nil {
		f.Skewed, f.Slews, f.Stale, f.PPause, f.PDie, f.PStale = false, false, false, 0, 0, 0
		f.layout.TimeBits, f.layout.Epoch = 41, fleettest.Start.AddDate(-3, 0, 0)
		alone(f)
	}
	f.newStore()
	f.Launch, f.Repair = f.launch, f.repair
	for range f.count {
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
	n := int(f.numbers())
	f.count = 1 + f.Rng.IntN(n+3)
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
	switch r := f.Rng.IntN(32); r {
	case 0: // time ends in the course of the run
		f.layout.TimeBits = 20
		left := time.Duration(f.Between(2*f.Period, f.Length+f.Period))
		f.layout.Epoch = fleettest.Start.Add(left - f.layout.Tick<<20)
	case 1: // a clock may go back to before the epoch
		f.layout.Epoch = fleettest.Start.Add(-time.Duration(f.Between(1, 3*f.Period)))
	}
}

// endsEarly reports whether time ends in the course of the run.
func (f *fleet) endsEarly() bool { return f.layout.TimeBits < 41 }

func (f *fleet) drawLeases() {
	f.locking = f.Often(128)
	f.strict = f.Often(32)
	if f.Often(160) {
		f.pinned = pinnedSome + pinning(f.Rng.IntN(2))
	}
}

func (f *fleet) drawCallers() {
	w := time.Duration(f.Period)
	all := []strategies.Strategy{
		strategies.Reject(), strategies.WaitUpTo(w / 4), strategies.WaitUpTo(w), strategies.BorrowUpTo(f.layout.Tick), strategies.BorrowUpTo(w / 2),
		strategies.BorrowUpTo(3 * w), strategies.BorrowUpTo(100 * time.Hour), strategies.Chain(strategies.BorrowUpTo(w/8), strategies.WaitUpTo(w/2)),
		strategies.PerCause(strategies.WaitUpTo(w/2), strategies.Reject()), strategies.PerCause(strategies.Reject(), strategies.BorrowUpTo(100*time.Hour)),
	}
	for _, s := range all {
		if f.Often(384) {
			f.strategies = append(f.strategies, s)
		}
	}
	if len(f.strategies) == 0 {
		f.strategies = append(f.strategies, strategies.BorrowUpTo(100*time.Hour))
	}
	for kind := single; kind <= bounded; kind++ {
		if f.Often(512) {
			f.calls = append(f.calls, kind)
		}
	}
	if len(f.calls) == 0 {
		f.calls = append(f.calls, single)
	}
	f.issuers = 1 + f.Rng.IntN(3)
	f.batch = 1 + f.Rng.IntN(64)
	f.pBurst = uint64(f.Rng.IntN(900))
	f.think = f.Between(f.Period/128, f.Period/3) + 2
	f.most = 200 + 100*min(f.count, 20)
}
