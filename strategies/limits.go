package strategies

import (
	"math"
	"time"
)

// Limits returns the bounds of s for a cause: a call waits no longer than wait, and its
// ID is no further ahead of the clock than borrow. A call whose lead is within either is
// served. For a [Strategy] made outside this package, both are the longest
// [time.Duration].
func Limits(s Strategy, cause Cause) (wait, borrow time.Duration) {
	if s, ok := s.(bounded); ok {
		return s.limits(cause)
	}
	return math.MaxInt64, math.MaxInt64
}

// WaitLimit returns the longest time that s makes a call wait for slots, for any cause. It
// is also how long a call without a deadline waits while a lease has no grant. A strategy
// made outside this package counts as 0, also inside a [Chain] or [PerCause].
func WaitLimit(s Strategy) time.Duration {
	if s, ok := s.(bounded); ok {
		return s.waitLimit()
	}
	return 0
}

func (b bound) waitLimit() time.Duration { return b.wait }

func (c chain) waitLimit() time.Duration {
	var limit time.Duration
	for _, member := range c {
		limit = max(limit, WaitLimit(member))
	}
	return limit
}

func (p perCause) waitLimit() time.Duration { return max(WaitLimit(p.exhausted), WaitLimit(p.behind)) }

func (b bound) limits(Cause) (wait, borrow time.Duration) { return b.wait, b.borrow }

func (c chain) limits(cause Cause) (wait, borrow time.Duration) {
	for _, member := range c {
		w, b := Limits(member, cause)
		wait, borrow = max(wait, w), max(borrow, b)
	}
	return wait, borrow
}

func (p perCause) limits(cause Cause) (wait, borrow time.Duration) {
	if cause == Exhausted {
		return Limits(p.exhausted, cause)
	}
	return Limits(p.behind, cause)
}
