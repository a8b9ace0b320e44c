package lease

import (
	"sync/atomic"
	"time"
)

// Stats is what a [Keeper] counted since it was made, and what it holds.
type Stats struct {
	Claims     uint64 // node numbers claimed
	Extensions uint64 // grants extended
	Conflicts  uint64 // node numbers lost to other processes
	Releases   uint64 // node numbers given back
	Failures   uint64 // operations of the store that failed, and cells that could not be read
	WentBack   uint64 // times that the store was found to have lost acknowledged writes: [ErrStoreWentBack]
	// Skew is how far this process's clock was ahead of the fleet's at the last
	// claim, as far as the others' grants tell: to about a third of a window. It is 0
	// if there were no others. What processes left that crashed can be far from any clock,
	// so a skew of more than a third of a window shows only when others have extended
	// their grants since the claim: some thirds of a window later.
	Skew time.Duration
	// Node is the node number that IDs are issued with, and Remaining how far the
	// end of its grant is from the clock: below zero past it.
	Node      int64
	Remaining time.Duration
	// Window is how much time is granted at once: in the ordinary course, Remaining
	// stays above two thirds of it.
	Window time.Duration
}

// counters only grow, but for skew, which is set.
type counters struct {
	claims, extensions, conflicts, releases, failures, wentBack atomic.Uint64
	skew                                                        atomic.Int64
}

// Stats returns the counts so far. They are read one after the other, not at one
// instant. It never waits for the store.
func (k *Keeper) Stats() Stats {
	_, limit := k.Granted()
	return Stats{
		Claims:     k.counters.claims.Load(),
		Extensions: k.counters.extensions.Load(),
		Conflicts:  k.counters.conflicts.Load(),
		Releases:   k.counters.releases.Load(),
		Failures:   k.counters.failures.Load(),
		WentBack:   k.counters.wentBack.Load(),
		Skew:       time.Duration(k.counters.skew.Load()),
		Node:       k.Node(),
		Remaining:  limit.Sub(k.clock.Now()),
		Window:     k.period,
	}
}
