// Package seam has what packages of this module need of each other's types, and no user does.
// Each function is set by the package whose type it takes, when that package is initialised,
// and never again.
package seam

import "time"

// Steady returns base and start such that a clock always reads base, in nanoseconds since 1970,
// plus time.Since(start). A caller that reads the clock all the time computes this by itself, which
// saves a call. ok is false unless the clock is a *monoclock.Clock that reads the machine's own
// clocks and does not resync. Package monoclock sets it.
var Steady func(clock any) (start time.Time, base int64, ok bool)

// Waiting returns how to wait for a clock, and its monotonic time since a fixed instant. after is
// nil if the clock goes by the machine's own time: the caller may then wait in any way. Package
// monoclock sets it.
var Waiting func(clock any) (after func(time.Duration) <-chan time.Time, elapsed func() time.Duration)

// Bind returns the *window.Ticks of a *lease.Keeper, from which one generator takes its slots. It
// fails if the keeper is closed, or bound already. Package lease sets it.
var Bind func(keeper any) (ticks any, err error)
