// Package cases has the ways to make an ID that the benchmark compares: those of
// tickflake, those of other generators, and the least that an ID can cost.
//
// You need these names: a [Case] opens a [Source], whose [Loop] values make IDs; [Ours],
// [Peers] and [Floor] return cases; [Together] runs loops at the same time.
//
// Each generator is called as its users call it, with its own settings. Where the format
// of the IDs limits the rate, there is a second case with a wider sequence, if the
// generator allows it.
package cases

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Case is a way to make IDs.
type Case struct {
	Name  string // unique
	Group results.Group
	Bits  int // of an ID, constant bits included
	Limit Limit
	Note  string
	// Clockless says that it reads no clock, as counted numbers do not.
	Clockless bool
	// Unit divides the number of IDs that a loop is asked for; 0 stands for 1.
	Unit int
	// Open returns a new source of IDs. The caller closes it; ctx bounds how long Open
	// takes.
	Open func(ctx context.Context) (Source, error)
}

// Source makes the IDs of one case, as one process does.
type Source struct {
	// Loop returns a loop for one goroutine. Loops of one source may run at the same
	// time, and share what the generator shares.
	Loop func() Loop
	// Close ends the source. It is nil if there is nothing to end.
	Close func() error
}

// Loop makes n IDs, one after the other or as the case says.
type Loop func(n int) error

// Loops returns loops of the source for so many goroutines.
func (s Source) Loops(goroutines int) []Loop {
	loops := make([]Loop, goroutines)
	for i := range loops {
		loops[i] = s.Loop()
	}
	return loops
}

// Limit is how many different IDs a format has: so many in each unit of its time. The
// zero Limit is none.
type Limit struct {
	IDs int
	Per time.Duration
	// A generator that is asked for more than its format has waits, unless it Repeats
	// IDs, or runs Ahead of the clock.
	Repeats, Ahead bool
}

// NanosecondsPerID is the time per ID at the limit, or 0 if there is none.
func (l Limit) NanosecondsPerID() float64 {
	if l.IDs == 0 {
		return 0
	}
	return float64(l.Per) / float64(l.IDs)
}

// Binds reports whether the limit may be what a loop measures: callers wait, and an ID at
// the limit takes longer than 50 ns, which is less than most generators need.
func (l Limit) Binds() bool { return !l.Repeats && !l.Ahead && l.NanosecondsPerID() > 50 }

// LeadIn is how many IDs use up the rest of a tick when goroutines share them out, so that
// a measurement begins with a whole tick. It is 0 if the limit does not bind.
func (l Limit) LeadIn(goroutines int) int {
	if !l.Binds() {
		return 0
	}
	return l.IDs + goroutines
}

// String returns, for example, "4,096 per 1ms", or "none".
func (l Limit) String() string {
	if l.IDs == 0 {
		return "none"
	}
	return fmt.Sprintf("%s per %s", results.Figure(float64(l.IDs)), l.Per)
}

// patience is how long the first goroutines wait for the others. A free processor starts
// a goroutine in less time, and a busy one must not hold up the measurement.
const patience = 100 * time.Microsecond

// Together runs the loops at the same time, each in a goroutine, with n IDs between them.
// No loop begins before as many goroutines run as there are processors, or before
// [patience] is over.
func Together(loops ...Loop) Loop {
	if len(loops) == 1 {
		return loops[0]
	}
	return func(n int) error {
		var done sync.WaitGroup
		var there atomic.Int64 // goroutines that run; each adds one
		wanted := int64(min(len(loops), runtime.GOMAXPROCS(0)))
		errs := make([]error, len(loops))
		for i, loop := range loops {
			share := n*(i+1)/len(loops) - n*i/len(loops)
			done.Go(func() {
				there.Add(1)
				for began := time.Now(); there.Load() < wanted && time.Since(began) < patience; {
				}
				errs[i] = loop(share)
			})
		}
		done.Wait()
		return errors.Join(errs...)
	}
}
