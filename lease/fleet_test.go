package lease_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

var (
	fleetSeed  = flag.Int64("fleet.seed", -1, "the one seed that TestFleet is to run, with a trace")
	fleetSeeds = flag.Int("fleet.seeds", fleetDefault, "how many seeds TestFleet is to run")
	fleetFrom  = flag.Uint64("fleet.from", 0, "the first of them")
)

// TestFleet runs processes that share node numbers, each on a clock that wanders,
// through everything that can happen to them and to their store. See fleet.
func TestFleet(t *testing.T) {
	if *fleetSeed >= 0 {
		f := traced(uint64(*fleetSeed), nil, 1<<20)
		os.Stdout.WriteString(f.trace.text(f))
		require.Empty(t, f.failures)
		return
	}
	begin := time.Now()
	sum := runFleets(t, *fleetFrom, *fleetSeeds, nil)
	t.Logf("%d seeds, %.0f a second: %s", *fleetSeeds, float64(*fleetSeeds)/time.Since(begin).Seconds(), sum)
}

// TestFleetRepeats makes sure that a seed is one run, to the byte of its trace, and that
// to trace it changes nothing.
func TestFleetRepeats(t *testing.T) {
	for seed := range uint64(fleetDefault / 30) {
		a, b := traced(seed, nil, 1<<20), traced(seed, nil, 1<<20)
		plain := newFleet(seed, nil)
		plain.play()
		require.Equal(t, a.trace.lines, b.trace.lines, "seed %d", seed)
		require.Equal(t, a.hash, b.hash, "seed %d", seed)
		require.Equal(t, a.hash, plain.hash, "seed %d", seed)
		require.Equal(t, a.steps, plain.steps, "seed %d", seed)
	}
}

// traced runs a seed and keeps the last lines of what happened.
func traced(seed uint64, m *mutant, lines int) *fleet {
	f := newFleet(seed, m)
	f.trace = &fleetTrace{most: lines}
	f.live = 0
	f.play()
	return f
}

func (tr *fleetTrace) text(f *fleet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %+v\n", f.seed, f.plan)
	for _, line := range tr.lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// play runs a fleet to its end.
func (f *fleet) play() {
	defer func() {
		f.over = true
		for _, p := range f.all {
			p.unwind()
		}
	}()
	for _, m := range f.machines {
		m.startLater(f.between(0, f.period))
	}
	if len(f.kinds) > 0 {
		f.at(f.faultEvery, f.nextFault)
	}
	f.run(f.chaos)
	f.settle()
	f.run(f.now + f.bound())
	if !f.over {
		f.checkLiveness(f.bound())
	}
	f.run(f.now + f.bound())
	if !f.over {
		f.checkLiveness(f.longest)
	}
}

func (f *fleet) nextFault() {
	if f.calm {
		return
	}
	f.fault()
	f.at(f.between(1, 2*f.faultEvery), f.nextFault)
}

// runFleets runs seeds on all cores, and tells of the first that fails.
func runFleets(t *testing.T, from uint64, seeds int, m *mutant) string {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var group errgroup.Group
	var next atomic.Uint64
	var mu sync.Mutex
	var sum tally
	sum.excused = map[string]int{}
	failed := atomic.Bool{}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < uint64(seeds) && !failed.Load(); i = next.Add(1) - 1 {
				f := newFleet(from+i, m)
				stuck := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("seed %d hangs", f.seed)) })
				f.play()
				stuck.Stop()
				mu.Lock()
				sum.add(&f.tally)
				mu.Unlock()
				if len(f.failures) > 0 {
					failed.Store(true)
					g := traced(f.seed, m, 250)
					if g.hash != f.hash {
						return fmt.Errorf("seed %d failed, and differently when it ran again: %v, then %v", f.seed, f.failures, g.failures)
					}
					return fmt.Errorf("%s\nto see all of it: go test ./lease -run TestFleet -fleet.seed=%d", g.trace.text(g), f.seed)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

func (s *tally) add(o *tally) {
	s.threads += o.threads
	s.issues += o.issues
	s.refusals += o.refusals
	s.grantErrors += o.grantErrors
	s.grants += o.grants
	s.requests += o.requests
	s.pauses += o.pauses
	s.faults += o.faults
	s.crashes += o.crashes
	s.zombies += o.zombies
	s.shutdowns += o.shutdowns
	s.restores += o.restores
	s.rewinds += o.rewinds
	s.wentBack += o.wentBack
	s.repeats += o.repeats
	s.lateWrites += o.lateWrites
	s.live += o.live
	for why, n := range o.excused {
		s.excused[why] += n
	}
}

func (s *tally) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d IDs, %d errors (%d for lack of a grant), %d grants, %d requests, %d writes that came late, %d faults, %d pauses, %d crashes, %d zombies, %d shutdowns, %d restores, %d times that the store went back (%d processes noticed, %d IDs were repeated in the time that it lost); in the calm %d issue as they should",
		s.issues, s.refusals, s.grantErrors, s.grants, s.requests, s.lateWrites, s.faults, s.pauses, s.crashes, s.zombies, s.shutdowns, s.restores, s.rewinds, s.wentBack, s.repeats, s.live)
	var whys []string
	for why := range s.excused {
		whys = append(whys, why)
	}
	sort.Strings(whys)
	for _, why := range whys {
		fmt.Fprintf(&b, ", %d do not: %s", s.excused[why], why)
	}
	return b.String()
}
