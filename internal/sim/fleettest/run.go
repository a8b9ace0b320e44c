package fleettest

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	oneSeed   = flag.Int64("fleet.seed", -1, "the one seed that TestFleet is to run, with a trace")
	manySeeds = flag.Int("fleet.seeds", 0, "how many seeds TestFleet is to run, or 0 for its usual number")
	fromSeed  = flag.Uint64("fleet.from", 0, "the first of them")
)

// Simulation is a [Fleet] with its processes.
type Simulation interface {
	Base() *Fleet
	Play()        // runs it to its end
	Plan() string // the draws that were made before the first step
}

// Test runs seeds, or the one seed that a flag names, and returns the sums of their tallies.
func Test[S Simulation](t *testing.T, seeds int, make func(seed uint64) S) (sums map[string]int) {
	if *oneSeed >= 0 {
		s := traced(uint64(*oneSeed), make)
		os.Stdout.WriteString(text(s, math.MaxInt))
		if failures := s.Base().Failures; len(failures) > 0 {
			t.Fatal(failures)
		}
		return s.Base().Tally
	}
	if *manySeeds > 0 {
		seeds = *manySeeds
	}
	if Race {
		seeds = min(seeds, raceSeeds)
	}
	begin := time.Now()
	sums = run(t, *fromSeed, seeds, make)
	t.Logf("%d seeds, %.0f a second: %v", seeds, float64(seeds)/time.Since(begin).Seconds(), sums)
	return sums
}

// raceSeeds is how many seeds run under the race detector. One goroutine runs at a time, so
// it has nothing to find, and takes ten times as long.
const raceSeeds = 90

// Mutant breaks the protocol in a way in which others have got it wrong.
type Mutant struct {
	Name   string
	Seeds  int         // within how many of them it must be caught
	Faults []FaultKind // that are more frequent than they are drawn to be
	Caught string      // the check that must see it
	From   uint64      // the first seed, so that the search is short
}

// Catch makes sure that a seed comes upon the failure by which a mutant is caught. It logs what other
// checks saw before.
func Catch[S Simulation](t *testing.T, m Mutant, make func(seed uint64) S) {
	t.Run(m.Name, func(t *testing.T) {
		t.Parallel()
		for seed := m.From; seed < m.From+uint64(m.Seeds); seed++ {
			s := make(seed)
			s.Base().KeepGoing = true
			s.Play()
			for _, v := range s.Base().Failures {
				t.Logf("seed %d: %s", seed, v)
				if v.What == m.Caught {
					return
				}
			}
		}
		t.Fatalf("%d seeds, and no failure %q", m.Seeds, m.Caught)
	})
}

// traced runs a seed with a trace.
func traced[S Simulation](seed uint64, make func(seed uint64) S) S {
	s := make(seed)
	s.Base().Trace = new([]string)
	s.Play()
	return s
}

// text is the last lines of a trace.
func text[S Simulation](s S, most int) string {
	lines := *s.Base().Trace
	return fmt.Sprintf("seed %d: %s\n%s\n", s.Base().Seed, s.Plan(), strings.Join(lines[max(len(lines)-most, 0):], "\n"))
}

// run runs seeds on all cores, and tells of the first that fails. A seed is one run, and to trace it changes
// nothing: else it says so.
func run[S Simulation](t *testing.T, from uint64, seeds int, make func(seed uint64) S) (sums map[string]int) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var group errgroup.Group
	var next atomic.Uint64
	var mu sync.Mutex
	sums = map[string]int{"issued": 0}
	failed := atomic.Bool{}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < uint64(seeds) && !failed.Load(); i = next.Add(1) - 1 {
				s := make(from + i)
				f := s.Base()
				stuck := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("seed %d hangs", f.Seed)) })
				s.Play()
				stuck.Stop()
				mu.Lock()
				sums["issued"] += f.Issued
				for what, n := range f.Tally {
					sums[what] += n
				}
				mu.Unlock()
				if len(f.Failures) > 0 {
					failed.Store(true)
					again := traced(f.Seed, make)
					if !slices.Equal(again.Base().Failures, f.Failures) {
						return fmt.Errorf("seed %d failed, and differently when it ran again: %v, then %v", f.Seed, f.Failures, again.Base().Failures)
					}
					return fmt.Errorf("%s\nto see all of it: go test -run '^%s$' -fleet.seed=%d", text(again, 250), strings.ReplaceAll(t.Name(), "/", "$/^"), f.Seed)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return sums
}
