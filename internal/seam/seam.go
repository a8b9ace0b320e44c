// Package seam has what packages of this module need of each other, and no user does: functions that a package sets
// before main, once, since they reach what it does not export, and [Poller], the only hook for tests.
package seam

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/word"
)

// Steady returns base, start and moved such that a clock always reads base, in nanoseconds since 1970,
// plus time.Since(start) plus what moved says. A caller that reads the clock all the time
// computes this by itself, which saves a call, and reads the clock once Due has come. moved is nil unless the clock is
// a *monoclock.Clock that reads the machine's own clocks.
var Steady func(clock interface{ Now() time.Time }) (start time.Time, base int64, moved *Moved)

// LimitsOf returns the limits of a strategies.Strategy.
var LimitsOf func(strategy any) (exhausted, behind Limits)

// StartBound returns the bound below which a strategies.SequenceStart is drawn, 1 for no draw. It fails
// unless the start fits a sequence of perTick IDs.
var StartBound func(start any, perTick int64) (below uint64, err error)

// SchemeOf returns the scheme of a store's URL, "" for a bare path, and PathOf the directory of a file: URL. Commands that only
// read look with them whether there is a directory, since stores.Open would make it. Their errors are *stores.URLError. Packages
// stores and stores/directory set them.
var SchemeOf, PathOf func(url string) (string, error)

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

// Limits are the bounds of a strategy for one cause.
type Limits struct {
	Always       time.Duration // it borrows up to this in every situation, so a generator need not ask
	Borrow, Wait time.Duration // it goes no further, as far as package strategies knows it
	Foreign      bool          // a part of it was made outside that package, and may go further
}

// Poller stands in for the goroutine of a *lease.Keeper, in tests on a clock of their own, where nothing may happen by itself:
// a Keeper that is claimed with its context has none, and works only within Poll. These tests run on any clock, also in programs
// of users, and testing/synctest knows only its own. Package lease sets Poll, which returns the time
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
