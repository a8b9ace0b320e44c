package strategies

import (
	"math"
	"time"
)

// Limits returns what s promises for a cause: a call waits no longer than wait,
// and its ID is no further ahead of the clock than borrow. A call whose lead is
// within either is served. For a [Strategy] made outside this package, which
// promises nothing that can be known, both are the longest time there is.
func Limits(s Strategy, cause Cause) (wait, borrow time.Duration) {
	if s, ok := s.(bounded); ok {
		return s.limits(cause)
	}
	return math.MaxInt64, math.MaxInt64
}

// WaitLimit returns the longest time that s makes a call wait for any cause. It is
// zero for a [Strategy] made outside this package.
func WaitLimit(s Strategy) time.Duration {
	if _, ok := s.(bounded); !ok {
		return 0
	}
	exhausted, _ := Limits(s, Exhausted)
	behind, _ := Limits(s, Behind)
	return max(exhausted, behind)
}

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
