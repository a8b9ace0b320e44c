package grant

import (
	"math"
	"math/bits"
	"time"
)

// A keeper writes once per third of its window. So that a fleet does not write at once, not
// even if all processes start at once or the store was away, these functions spread the
// writes at random. Uniqueness depends on none of them.

// Urgent is the longest time between two tries while nothing is granted and calls fail, unless
// there are many node numbers: see [Retry].
const Urgent = 9 * time.Second

// each is the time between two tries, of all processes together, that a store should bear.
const each = time.Millisecond

// Retry is the time from one failed try to the next. left is how long the grant still lasted when the
// first began. The time is three tenths of a window: a little less than a third, so that a fleet in
// which every keeper has failed writes little more often than at rest. The last try comes just before
// the grant ends, since the store may be back by then. After that, granted is false, and the time is at
// most [Urgent], or so long that a fleet with all these node numbers tries 1,000 times a second.
func Retry(window time.Duration, nodes int64, left time.Duration) (pause time.Duration, granted bool) {
	pause = max(window/10*3, time.Millisecond)
	if before := min(window/100, time.Second); left > before {
		return min(pause, left-before), true
	}
	return min(pause, max(Urgent, time.Duration(nodes)*each)), false
}

// ExtendAt is the tick at which a grant up to limit is to be extended at the latest: two
// thirds of a window are left then.
func ExtendAt(limit, window uint64) uint64 { return limit - min(limit, window/3*2) }

// Spread is a random part of d: above 0, at most d. The first extension after a claim, the
// second of several tries in a row, and the first after a grant has ended come at a random
// instant. The later ones follow at equal intervals, so that they stay spread.
func Spread(d time.Duration, random uint64) time.Duration {
	high, _ := bits.Mul64(random, uint64(d))
	return time.Duration(high) + 1
}

// RetryClaim is the time from one failed first claim to the next. It doubles from 40 ms up to
// three tenths of a window, so that a store that cannot serve all claims at once serves them in
// the end, and half of it is random.
func RetryClaim(window time.Duration, failures int, random uint64) time.Duration {
	pause, _ := Retry(window, 0, math.MaxInt64)
	if failures < 20 {
		pause = min(pause, 20*time.Millisecond<<failures)
	}
	return pause - pause/2 + Spread(pause/2, random)
}

// Next is when to try again after a try that began and failed at these times: a pause after it began,
// so that tries that hang keep their intervals, but at least half a pause after it failed.
func Next(began, failed, pause time.Duration) time.Duration {
	return max(began+pause, failed+pause/2)
}
