package sequence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/fleettest"
)

// fleetSeeds is how many seeds TestFleet runs unless a flag says otherwise.
const fleetSeeds = 300

func correct(seed uint64) *fleet { return newFleet(seed, nil) }

// TestFleet runs processes that share sequences through everything that can happen to them
// and to their store. See fleet.
func TestFleet(t *testing.T) {
	var sum tally
	var base fleettest.Tally
	fleettest.Test(t, fleetSeeds, correct, func(f *fleet) {
		fleettest.Sum(&sum, f.tally)
		fleettest.Sum(&base, f.Tally)
	})
	t.Logf("%+v\n%+v", base, sum)
}

// TestFleetRepeats makes sure that a seed is one run.
func TestFleetRepeats(t *testing.T) { fleettest.Repeats(t, correct) }

// TestFleetStale makes sure that stale reads, every fifth one, cost few numbers: a process that takes
// one for a store that went back soon finds that it was wrong.
func TestFleetStale(t *testing.T) {
	var numbers [2]int
	for i, p := range []uint64{0, 205} {
		fleettest.Test(t, fleetSeeds/5, func(seed uint64) *fleet {
			f := correct(seed)
			f.PStale = p
			return f
		}, func(f *fleet) { numbers[i] += f.Numbers })
	}
	t.Logf("%d numbers, and %d with stale reads", numbers[0], numbers[1])
	if numbers[1] < numbers[0]*3/4 {
		t.Error("too few")
	}
}

// Play runs a fleet to its end.
func (f *fleet) Play() {
	defer f.End()
	f.Chaos()
	f.repairSequences()
	f.Run(f.Now + f.bound())
	since := f.Now
	f.Run(f.Now + f.bound())
	if !f.Over {
		f.checkLiveness(since)
	}
	for _, p := range f.all {
		if !p.Dead {
			p.last = true
			p.Shutdown()
		}
	}
	f.Run(f.Now + f.bound())
	if !f.Over {
		f.checkMissing()
	}
}

// bound is within what time every process issues again once the faults are over. A call
// that found that it must fail for good is repeated after a second.
func (f *fleet) bound() int64 { return 4*f.Period + int64(4*time.Second) }

// tally has the counts of a run.
type tally struct {
	Numbers, Batches, Refusals, Grants, Adopted, GivenBack, Marks, Repeats int
	Trusted, Unclear                                                       int // suspicions that have ended
	Shutdowns, Clean, Restores, Clones, Changes, Missing, Live             int
}

// Plan shows what was drawn.
func (f *fleet) Plan() string { return fmt.Sprintf("%+v %+v", f.Chance, f.plan) }
