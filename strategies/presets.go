package strategies

import "time"

// Default returns the strategy of a generator without a strategy option: wait up to one
// second, for either cause, then reject.
//
// Waiting is safe also without a lease: no ID carries a future time, so after a crash a
// new process on the same clock repeats none. An exhausted sequence has room again at
// the next tick, for most layouts within a millisecond. One second covers a leap second,
// the steps that NTP makes after a short outage, and, at the ceiling, a queue of as many
// calls as IDs are issued in a second. A caller that would wait longer gets an error on
// which it can act. Callers with less time pass a context with a deadline.
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

// LastTimestampPlusOne returns the behaviour of generators that continue from the last
// timestamp plus one while the clock is behind: borrow, up to 24 hours ahead of the
// clock. Those generators have no bound; this strategy has one, so that a clock that is
// years off shows as an error.
func LastTimestampPlusOne() Strategy { return BorrowUpTo(24 * time.Hour) }
