package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/fleettest"
)

// fleetSeeds is how many seeds TestFleet runs unless a flag says otherwise.
const fleetSeeds = 500

func correct(seed uint64) *fleet { return newFleet(seed, nil, nil) }

// TestFleet runs processes that share node numbers, each on a clock that wanders,
// through everything that can happen to them and to their store. See fleet.
func TestFleet(t *testing.T) {
	var sum tally
	var base fleettest.Tally
	fleettest.Test(t, fleetSeeds, correct, func(f *fleet) {
		fleettest.Sum(&sum, f.tally)
		fleettest.Sum(&base, f.Tally)
	})
	t.Logf("%+v\n%+v", base, sum)
}

// profile has a fleet meet one fault of the catalogue, and no other.
type profile struct {
	name  string
	draw  func(*fleet)                                          // changes what was drawn
	check func(t *testing.T, sum *tally, base *fleettest.Tally) // of all seeds
}

var profiles = []profile{
	{"F14-skewed-fleet", func(f *fleet) {
		f.Skewed, f.PStore = true, 0
		f.Kinds = []fleettest.FaultKind{fleettest.StepHours, fleettest.StepLarge, fleettest.Kill, fleettest.Shutdown, fleettest.PauseAll, fleettest.Zombie}
	}, func(t *testing.T, sum *tally, _ *fleettest.Tally) {
		assert.Positive(t, sum.Losses, "no fast clock took the number of a slow one")
	}},
	// The store is away, refuses, loses requests and answers, and takes late ones.
	{"F15-store-outage", func(f *fleet) {
		f.Kinds, f.Fates, f.PStore = []fleettest.FaultKind{fleettest.Partition, fleettest.Outage}, fleettest.AllFates(), 300
	}, func(t *testing.T, sum *tally, base *fleettest.Tally) {
		assert.Positive(t, sum.GrantErrors)
		assert.Positive(t, base.LateWrites)
	}},
	// It is slow, but answers in time.
	{"F15-slow-store", func(f *fleet) {
		f.alone()
		f.PStore, f.Latency = 0, f.Period/40
	}, func(t *testing.T, sum *tally, _ *fleettest.Tally) {
		assert.Zero(t, sum.Ended, "grants ended")
		assert.Zero(t, sum.Losses, "processes lost their numbers")
	}},
	// Answers to writes are lost as well, since a keeper reads its cell only then.
	{"F21-stale-read", func(f *fleet) {
		f.alone()
		f.PStale, f.Fates, f.PStore = 200, []fleettest.Fate{fleettest.Unanswered}, 150
	}, func(t *testing.T, sum *tally, base *fleettest.Tally) {
		assert.Positive(t, base.StaleReads)
		// A number whose grant ended two windows ago is free, so another may take it: 13 of 113,398.
		assert.Less(t, 1000*sum.Losses, sum.Ended, "processes lost their numbers")
		assert.Less(t, 9*sum.Ended, sum.Issues)
	}},
}

// alone has each process a number that no other wants.
func (f *fleet) alone() {
	f.Kinds, f.pinned, f.windows, f.longest, f.strict = nil, pinnedNone, false, f.Period, false
	f.count = min(f.count, int(f.numbers()))
}

// TestFleetUnder runs fleets that meet one fault only, on machines that are not held up and
// keep time, unless the fault says otherwise.
func TestFleetUnder(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			var sum tally
			var base fleettest.Tally
			fleettest.Test(t, 150, func(seed uint64) *fleet { return newFleet(seed, nil, p.draw) }, func(f *fleet) {
				fleettest.Sum(&sum, f.tally)
				fleettest.Sum(&base, f.Tally)
			})
			t.Logf("%+v\n%+v", base, sum)
			p.check(t, &sum, &base)
		})
	}
}

// TestFleetRepeats makes sure that a seed is one run.
func TestFleetRepeats(t *testing.T) { fleettest.Repeats(t, correct) }

// Play runs a fleet to its end.
func (f *fleet) Play() {
	defer f.End()
	f.Chaos()
	f.batch = min(f.batch, 4)
	f.Run(f.Now + f.bound())
	if !f.Over {
		f.checkLiveness(f.bound())
	}
	f.Run(f.Now + f.bound())
	if !f.Over {
		f.checkLiveness(f.longest)
	}
}

// repair steps a clock by which no ID could be issued: the others go on from where they are.
func (f *fleet) repair(m *fleettest.Machine) int64 {
	if now := fleettest.Start.Add(time.Duration(m.Wall())); now.Before(f.layout.Epoch) || !now.Before(f.layout.End()) {
		return -m.Wall()
	}
	return 0
}
