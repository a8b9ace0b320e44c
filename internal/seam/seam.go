// Package seam has what packages of this module need of each other's types, and no user does.
// Each function is set by the package whose type it takes, when that package is initialised,
// and never again.
package seam

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tickflake/tickflake/internal/word"
)

// Steady returns base, start and moved such that a clock always reads base, in nanoseconds since 1970,
// plus time.Since(start) plus what moved says. A caller that reads the clock all the time computes this
// by itself, which saves a call, and reads the clock once Due has come. moved is nil unless the clock is
// a *monoclock.Clock that reads the machine's own clocks. Package monoclock sets it.
var Steady func(clock any) (start time.Time, base int64, moved *Moved)

// Moved is what a *monoclock.Clock has added to the elapsed time, in nanoseconds. It has cache lines of
// its own, which a look at the machine's clocks writes, at most once a second.
type Moved struct {
	_ [64]byte
	// Slept is the time of suspends, and CaughtUp that of resyncs. Each only grows, so a reading
	// that comes after a growth includes it.
	Slept, CaughtUp word.Int64
	// Due is the elapsed time from which the next reader looks. It only grows. The reader whose
	// compare-and-swap moves it does the look.
	Due word.Int64
	_   [64]byte
}

// By is what is to be added.
func (m *Moved) By() int64 { return m.Slept.Load() + m.CaughtUp.Load() }

// KernelError returns how far the machine's wall clock may be off by the kernel's own word, if that says
// it. Package monoclock sets it before main, and tests replace it.
var KernelError func() (most time.Duration, ok bool)

// Waiting returns how to wait for a clock, and its monotonic time since a fixed instant. after is
// nil if the clock goes by the machine's own time: the caller may then wait in any way. Package
// monoclock sets it.
var Waiting func(clock any) (after func(time.Duration) <-chan time.Time, elapsed func() time.Duration)

// Bind returns the *window.Ticks of a *lease.Keeper, from which one generator takes its slots. It
// fails if the keeper is closed, or bound already. Package lease sets it.
var Bind func(keeper any) (ticks any, err error)

// Limits are the bounds of a strategy for one cause.
type Limits struct {
	Always       time.Duration // it borrows up to this in every situation, so a generator need not ask
	Borrow, Wait time.Duration // it goes no further, as far as package strategies knows it
	Foreign      bool          // a part of it was made outside that package, and may go further
}

// LimitsOf returns the limits of a strategies.Strategy. Package strategies sets it.
var LimitsOf func(strategy any) (exhausted, behind Limits)

// StartOf returns the bound below which a strategies.SequenceStart draws, 1 for no draw. It fails
// unless the start fits a sequence of perTick IDs. Package strategies sets it.
var StartOf func(start any, perTick int64) (below uint64, err error)

// FirstNode draws the node number with which a new scattered store begins, from 0 up to nodes. It is set before
// main by tests alone, which want a number that they know.
var FirstNode = rand.Int64N

// OnDisk makes each directory stand on a disk of this host, whatever its file system is. It is set before main by
// tests alone, whose temporary files may be in memory or in a container's own layer, of which a store warns.
var OnDisk bool

// Poller stands in for the goroutine of a *lease.Keeper, in tests in virtual time, where nothing may happen by itself: one
// that is claimed with its context has none, and works only within Poll. Package lease sets Poll, which returns the time
// until the next step is due, and the keeper's error.
type Poller struct {
	Poll func(context.Context) (next time.Duration, err error)
}

type pollerKey struct{}

// In returns ctx with the poller.
func (p *Poller) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, pollerKey{}, p)
}

// Polled sets Poll if ctx has a poller, and reports that.
func Polled(ctx context.Context, poll func(context.Context) (time.Duration, error)) bool {
	p, ok := ctx.Value(pollerKey{}).(*Poller)
	if ok {
		p.Poll = poll
	}
	return ok
}
