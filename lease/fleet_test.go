package lease_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/fleettest"
)

// fleetSeeds is how many seeds TestFleet runs unless a flag says otherwise.
const fleetSeeds = 500

func correct(seed uint64) *fleet { return newFleet(seed, nil) }

// TestFleet runs processes that share node numbers, each on a clock that wanders,
// through everything that can happen to them and to their store. See fleet.
func TestFleet(t *testing.T) {
	sum, base := tally{excused: map[string]int{}}, fleettest.Tally{}
	fleettest.Test(t, fleetSeeds, correct, func(f *fleet) {
		sum.add(&f.tally)
		base.Add(&f.Tally)
	})
	t.Logf("%+v", base)
	t.Log(sum.String())
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

func (s *tally) add(o *tally) {
	s.issues += o.issues
	s.refusals += o.refusals
	s.grantErrors += o.grantErrors
	s.grants += o.grants
	s.shutdowns += o.shutdowns
	s.restores += o.restores
	s.wentBack += o.wentBack
	s.trusted += o.trusted
	s.repeats += o.repeats
	s.live += o.live
	for why, n := range o.excused {
		s.excused[why] += n
	}
}

func (s *tally) String() string {
	text := fmt.Sprintf("%d IDs, %d errors (%d for lack of a grant), %d grants, %d shutdowns, %d restores; %d times a store was trusted again, %d processes noticed that it went back, and %d IDs were repeated in the time that it lost; in the calm %d issue as they should",
		s.issues, s.refusals, s.grantErrors, s.grants, s.shutdowns, s.restores, s.trusted, s.wentBack, s.repeats, s.live)
	for _, why := range slices.Sorted(maps.Keys(s.excused)) {
		text += fmt.Sprintf(", %d do not: %s", s.excused[why], why)
	}
	return text
}
