package sequence_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/sequence"
)

// TestFleet runs processes that share a sequence through everything that can happen to them
// and to their store. See fleet.
func TestFleet(t *testing.T) {
	fleettest.Test(t, 160, func(seed uint64) *fleet { return newFleet(seed) })
}

// TestFleetStale makes sure that stale reads, every fifth one, cost few numbers: a process that takes
// one for a store that went back soon finds that it was wrong.
func TestFleetStale(t *testing.T) {
	var numbers [2]int
	for i, p := range []uint64{0, 205} {
		numbers[i] = fleettest.Test(t, 30, func(seed uint64) *fleet {
			f := newFleet(seed)
			f.PStale = p
			return f
		})["issued"]
	}
	t.Logf("%d numbers, and %d with stale reads", numbers[0], numbers[1])
	if numbers[1] < numbers[0]*3/4 {
		t.Error("too few")
	}
}

// TestFleetCatches makes sure that the simulation comes upon the promise that a mutant breaks.
func TestFleetCatches(t *testing.T) {
	s1 := fleettest.Mutant{Name: "S1 an unknown outcome is taken for a failure", Seeds: 500, Caught: "duplicate"}
	fleettest.Catch(t, s1, func(seed uint64) *fleet {
		f := newFleet(seed)
		f.mutant = true
		return f
	})
}

// fleet is one run of the simulation: machines with processes that share a sequence.
type fleet struct {
	*fleettest.Fleet
	plan

	all  []*process // in the order of their start
	cell *ledger
}

// plan is drawn from a seed before the first step, beside what may go wrong.
type plan struct {
	count      int // machines
	definition sequence.Definition

	batch   int64
	pBatch  uint64 // of 1024: a call of NextN
	timeout int64  // of a call, at most
	outage  int64

	mutant bool // S1
}

// The faults of sequences.
const (
	empty    = fleettest.OwnFaults + iota // the store loses all cells
	steps                                 // Set changes the steps
	raise                                 // Set raises, or would lower, the next number
	maximum                               // Set changes the maximum
	recreate                              // the sequence is deleted, and created anew
	last
)

// newFleet makes the run of a seed.
func newFleet(seed uint64) *fleet {
	f := &fleet{Fleet: fleettest.New(seed)}
	f.drawSize()
	var more []fleettest.FaultKind
	for kind := empty; kind < last; kind++ {
		often := uint64(256)
		if kind == empty || kind == recreate {
			often = 64
		}
		if f.Often(often) {
			more = append(more, kind)
		}
	}
	f.Draw(f.count, more...)
	if f.Often(256) {
		f.PStale = uint64(f.Between(1, 256))
	}
	f.drawSequence()
	f.Launch, f.Fault = f.launch, f.fault
	for range f.count {
		f.Boot()
	}
	return f
}

func (f *fleet) drawSize() {
	f.count = 1 + f.Rng.IntN(5)
	f.Period = int64(time.Second) / 16 << f.Rng.IntN(6)
	f.Period += f.Rng.Int64N(f.Period)
	f.Length = int64(6+f.Rng.IntN(20)) * f.Period
	f.MostProcesses, f.Room = 4*f.count+4, math.MaxInt

	f.Issuers = 1 + f.Rng.IntN(4)
	f.batch = 1
	if f.Often(512) {
		f.batch = 1 + f.Rng.Int64N(64)
	}
	f.PBurst, f.pBatch = uint64(f.Rng.IntN(1000)), uint64(f.Rng.IntN(512))
	f.Think, f.Rest = f.Between(f.Period/256, f.Period/4)+2, f.bound()/8
	f.timeout = f.Between(f.Period/32, 2*f.Period)
	f.outage = f.Between(0, 4*f.Period)
	f.Most = 600
}

const name = "orders"

func (f *fleet) drawSequence() {
	d := sequence.Definition{Mode: bothModes[f.Rng.IntN(2)], Start: f.Rng.Int64N(3), MinStep: 1 + f.Rng.Int64N(16)}
	d.FromZero, d.MaxStep = d.Start == 0, d.MinStep<<f.Rng.IntN(7)
	if f.Often(256) {
		d.Max = d.Start + 4 + f.Rng.Int64N(400)
	}
	if f.Often(192) {
		d.Stride = sequence.Every(2, f.Rng.Int64N(2))
	}
	f.definition = d
	f.cell = &ledger{f: f, lives: map[string]*life{}, issued: map[int64]*life{}}
	f.Store.Landed = func(p *fleettest.Process, _ string, value []byte) { f.cell.landed(p, decode(value)) }
	f.Store.Rewound = func(_ string, value []byte) { f.cell.rewound(decode(value)) }
}

func decode(value []byte) cell.Sequence {
	if value == nil {
		return cell.Sequence{}
	}
	r, err := cell.DecodeSequence(value)
	if err != nil {
		panic(err)
	}
	return r
}

// text shows a record without its random names.
func text(r cell.Sequence) string {
	s := fmt.Sprintf("next %d, from %d, most %d, writes %d, steps %d to %d, max %d", r.Next, r.From, r.Most, r.Writes, r.MinStep, r.MaxStep, r.Max)
	if r.Lost {
		s += ", lost"
	}
	if r.Deleted {
		s += ", deleted"
	}
	return s
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
	f.Ending = true
	for _, p := range f.all {
		if !p.Dead {
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

// Plan shows what was drawn.
func (f *fleet) Plan() string { return fmt.Sprintf("%+v %+v %+v", f.Chance, f.Load, f.plan) }
