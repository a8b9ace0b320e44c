// Package fleettest simulates a fleet of processes that share a store: on clocks that wander,
// through crashes, pauses, lost and late writes, and a store that goes back. A seed is one
// run, the same in every step. Packages lease and sequence put their processes into it.
//
// You need these names:
//
//   - [Fleet] is one run. A simulation embeds one from [New], draws what may go wrong with
//     [Fleet.Draw], watches the [Store], and makes the machines.
//   - [Program] is the process of a simulation. Its threads are made by [Process.Spawn] and
//     [Process.Issue], and call [Thread.Hiccup] where others may come first.
//   - [Client] is a process's way to the store.
//   - [Test] and [Mutant] run the seeds.
package fleettest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Load is how often the callers of each process call.
type Load struct {
	Issuers int    // threads of a process that issue, at most
	PBurst  uint64 // of 1024: a call that follows at once
	Think   int64  // before each of the others, at most
	Rest    int64  // before each when the faults are over, at most
	Most    int    // values that are issued, after which there are few calls
}

// Fleet is one run of a simulation: machines with processes, over one store, on a scheduler
// that a seed drives. True time is in nanoseconds from the start of the run.
//
// Every process is made of a few threads, which are coroutines. One thread runs at a
// time, and others come first only where it asks for time: at a reading of the
// clock, at a wait, on the way to the store and back. So two runs of a seed are the
// same in every step, and the race detector has nothing to see here; what goes wrong
// between two machine instructions is for tests with real goroutines.
type Fleet struct {
	Chance
	Seed    uint64
	Rng     *rand.Rand
	Now     int64
	Steps   int
	Current *Thread // who runs, or nil
	Calm    bool    // the faults are over
	Ending  bool    // no process is started any more
	Over    bool

	CalmSince int64
	Machines  []*Machine
	Processes []*Process // in the order of their start
	Store     *Store
	Issued    int            // values, by all
	Tally     map[string]int // what else has happened, and how often

	Load

	Failures  []Failure
	KeepGoing bool      // past the first failure, to see others
	Trace     *[]string // its lines, or nil

	// Of the simulation.

	// Launch makes the program of a process that starts.
	Launch func(*Process) Program
	// Fault does a fault of a kind from FaultKinds on.
	Fault func(FaultKind, *Machine)

	queue []entry    // in the order in which they happen
	late  []*request // those that are, or were, held up
}

// Start is the true time at which every run starts.
var Start = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// New makes the run of a seed, with nothing in it.
func New(seed uint64) *Fleet {
	return &Fleet{Seed: seed, Rng: rand.New(rand.NewPCG(seed, 0x666c656574)), Tally: map[string]int{},
		Store: &Store{cells: map[string]storedCell{}, locks: map[string]*Process{}}}
}

// Base returns f. It is how a simulation that embeds f shows it.
func (f *Fleet) Base() *Fleet { return f }

// Failure is a broken promise.
type Failure struct {
	What   string
	Detail string
}

func (v Failure) String() string { return v.What + ": " + v.Detail }

// Fail notes a broken promise, and ends the run.
func (f *Fleet) Fail(what, format string, args ...any) {
	if slices.ContainsFunc(f.Failures, func(v Failure) bool { return v.What == what }) {
		return
	}
	v := Failure{what, fmt.Sprintf(format, args...)}
	f.Failures = append(f.Failures, v)
	f.Tracef("FAILURE: %s", v)
	f.Over = !f.KeepGoing
}

// Between draws from low up to high.
func (f *Fleet) Between(low, high int64) int64 {
	if high <= low {
		return low
	}
	return low + f.Rng.Int64N(high-low)
}

// Often is true in n of 1024 cases.
func (f *Fleet) Often(n uint64) bool { return n > 0 && f.Rng.Uint64()&1023 < n }

// Tracef adds a line to the trace, if there is one.
func (f *Fleet) Tracef(format string, args ...any) {
	if f.Trace == nil || f.Over {
		return
	}
	*f.Trace = append(*f.Trace, fmt.Sprintf("%12s  %s", time.Duration(f.Now), fmt.Sprintf(format, args...)))
}

// Chaos starts a process on each machine, lets faults happen for as long as the plan says,
// and ends them.
func (f *Fleet) Chaos() {
	for _, m := range f.Machines {
		m.StartLater(f.Between(0, f.Period))
	}
	if len(f.Kinds) > 0 {
		f.At(f.FaultEvery, f.nextFault)
	}
	f.Run(f.Length)
	f.settle()
}

// End ends a run. It is called also after a failure.
func (f *Fleet) End() {
	f.Over = true
	for _, p := range f.Processes {
		p.unwind()
	}
}
