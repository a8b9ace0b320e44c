package strategies

import "time"

// Default returns the strategy of a generator that is given none: wait up to
// one second, whatever the cause, then reject.
//
// It waits because waiting is safe on its own. No ID carries a time that has not
// come, so a crash leaves no slot behind that a new process could issue again.
// An exhausted sequence frees up at the next tick, for most layouts within a
// millisecond. One second covers a queue at the ceiling, a leap second and the
// steps that NTP makes after a short outage; a caller that would have to wait
// longer is better served by an error, which it can act on, than by a stall.
// Callers in more of a hurry pass a context with a deadline.
func Default() Strategy { return WaitUpTo(time.Second) }

// LikeTwitter returns the behaviour of Twitter's Snowflake: wait for the next tick
// when the sequence is exhausted, reject while the clock is behind.
func LikeTwitter() Strategy { return PerCause(Wait(), Reject()) }

// LikeLeaf returns the behaviour of Meituan's Leaf: wait for the next tick when the
// sequence is exhausted; wait up to 5 ms when the clock is behind, then reject.
// Leaf also begins each tick's sequence at random: see [LeafStart].
func LikeLeaf() Strategy { return PerCause(Wait(), WaitUpTo(5*time.Millisecond)) }

// LeafStart returns Leaf's sequence start: random, below 100.
func LeafStart() SequenceStart { return StartRandom(100) }

// LastTimestampPlusOne returns the behaviour of generators that go on from the
// last timestamp plus one when the clock does not serve: borrow, up to 24 hours
// ahead of the clock. Those generators know no bound; this one has one, so that
// a clock which is years off is noticed.
func LastTimestampPlusOne() Strategy { return BorrowUpTo(24 * time.Hour) }
