package protocol

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

// Retry is the time from one failed try to the next, if the first began when the grant had left
// to go. It is three tenths of a window: a little less than a third, so that a fleet of which all
// keepers have failed writes little more often than at rest. The last try comes just before the
// grant ends, since the store may be back by then. After that, granted is false, and the
// time is at most [Urgent], or so long that a fleet with all these node numbers tries 1,000 times a
// second.
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

// Next is when to try again after a try that began and failed at these times: pause after it
// began, so that tries that hang keep their intervals, but half of that after it failed.
func Next(began, failed, pause time.Duration) time.Duration {
	return max(began+pause, failed+pause/2)
}

// Search says which node numbers a claim reads. It reads blocks of numbers, from a random
// block on, until it finds a free number, so a claim among millions reads few.
type Search struct {
	Nodes int64 // how many node numbers there are
	First int64 // the number that it began with
	Done  int64 // how many numbers it has read
	block int64 // the length of the next block, if it is not the first
}

const (
	firstBlock = 256
	LastBlock  = 4096
	// enough is how many numbers are read before a claim takes one whose holder may be
	// alive, or whose limit is ahead of the clock.
	enough = 4096
)

// NewSearch begins at a block that pick chooses.
func NewSearch(nodes int64, pick uint64) Search {
	return Search{Nodes: nodes, First: int64(pick%uint64(nodes)) / firstBlock * firstBlock}
}

// Block returns the next block: n numbers from one on.
func (p *Search) Block() (from, n int64) {
	from = (p.First + p.Done) % p.Nodes
	n = min(max(p.block, firstBlock), p.Nodes-p.Done, p.Nodes-from)
	p.Done += n
	p.block = min(2*max(p.block, firstBlock), LastBlock)
	return from, n
}

// Settled reports whether no further block is needed, if the best candidate so far has this
// rank.
func (p *Search) Settled(rank Rank) bool {
	return rank == Ready || p.Done >= p.Nodes || rank != None && p.Done >= enough
}
