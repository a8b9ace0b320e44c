package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/span"
)

// This file compares our clock with the clocks of the others, by the cells that the
// rounds of the protocol have read: a holder keeps its limit between two thirds and a
// whole of its window ahead of its clock. Nothing of the protocol depends on it.
//
// A crash, of one process or of the whole fleet, may leave a limit that is far from all
// clocks. Living processes write again within a third of their window, so only cells that
// were written again count. The error, of a first claim only, waits for such writes; a
// warning is logged once there are some.

const (
	// sampled is the largest number of cells to compare with.
	sampled = 256
	// leastFleet is how many others must agree that our clock is ahead before a first claim
	// waits to see whether they are alive. One or two may have crashed some time ago, and on
	// the single host of a store with locks all of them may.
	leastFleet = 3
)

// doubt says that the clock may be far from the fleet's. It ends when living holders have
// written again.
type doubt struct {
	versions map[int64]uint64 // of the cells at the claim; nil if there is no doubt
	from, to string           // the range of their keys
	due      time.Duration    // when all living holders should have written again, in elapsed time
	again    time.Duration    // the time from one look to the next
	asked    int
}

// checkClock compares our clock with the fleet's by the cells that a claim has read, or, if
// these are too few, by a sample of all cells. The error is that of a strict first
// claim. waited says that it had to wait, so the cells are old.
func (k *Keeper) checkClock(ctx context.Context, cells []grant.Cell, others bool) (waited bool, err error) {
	k.doubts = doubt{}
	d := doubt{from: cell.NodesFrom, to: cell.NodesTo, versions: map[int64]uint64{}}
	theirs := k.living(nil, cells)
	if n := len(cells); len(theirs) >= leastFleet {
		d.from, d.to = cell.NodeKey(cells[0].Node), cell.NodeKey(cells[n-1].Node)+"\x00"
	} else if others && int64(n) < k.numbers() {
		if cells, err = k.list(ctx, d.from, d.to, sampled); err != nil {
			return false, err
		}
		theirs = k.living(nil, cells)
	}
	for _, c := range theirs {
		d.versions[c.Node] = c.Version
	}
	skew, nodes := k.skewOf(theirs)
	first := k.Stats().Claims == 0
	if k.far(skew, theirs) && k.strict && first && !(skew > 0 && (nodes < leastFleet || k.locking())) {
		select {
		case <-k.after(k.period / 2):
		case <-ctx.Done():
			return false, fmt.Errorf("%w: no time to see whether the others live: %w", drive.ContextError(ctx), k.skewError(skew, nodes))
		}
		_, err = k.look(ctx, d)
		return true, err
	}
	if skew.Abs() > k.span(0, k.config.window)/3 {
		d.again = k.span(0, k.longestOf(theirs)) / 3
		d.due = k.elapsed() + d.again
		k.doubts, skew = d, 0
	}
	k.setSkew(skew)
	return false, nil
}

// look compares our clock with those of the holders that have written since a doubt began. The error is
// that of the store, or that of a skew beyond the limit.
func (k *Keeper) look(ctx context.Context, d doubt) (some bool, err error) {
	cells, err := k.list(ctx, d.from, d.to, sampled)
	if err != nil {
		return false, err
	}
	living := k.living(d.versions, cells)
	skew, nodes := k.skewOf(living)
	k.setSkew(skew)
	if k.far(skew, living) {
		err = k.skewError(skew, nodes)
	}
	return len(living) > 0, err
}

func (k *Keeper) setSkew(skew time.Duration) {
	k.state.Lock()
	defer k.state.Unlock()
	k.stats.Skew = skew
}

// settle compares our clock with those of the holders that have written since the claim.
// It delays extensions by k.brief at most, and looks at most three times.
func (k *Keeper) settle(ctx context.Context) {
	d := &k.doubts
	if d.versions == nil || k.elapsed() < d.due {
		return
	}
	d.due += d.again
	d.asked++
	bounded, cancel := context.WithTimeout(ctx, k.brief)
	defer cancel()
	some, err := k.look(bounded, *d)
	switch {
	case errors.Is(err, ErrSkew):
		k.log.Warn("lease: "+err.Error(), kindAttr(err))
	case errors.Is(err, ErrStore):
		k.tally(&k.stats.Failures)
	}
	if some || d.asked == 3 {
		k.doubts = doubt{}
	}
}

// living returns the cells that show the clocks of other processes, and were written since they had these
// versions.
func (k *Keeper) living(versions map[int64]uint64, cells []grant.Cell) (living []grant.Cell) {
	for _, c := range cells {
		if r := c.Record; r.Holder != "" && r.Holder != k.machine.Token() && r.Limit < k.end() && c.Node != k.node && c.Version != versions[c.Node] {
			living = append(living, c)
		}
	}
	return living
}

// longestOf is the longest window of the cells of others, and of ours.
func (k *Keeper) longestOf(cells []grant.Cell) uint64 {
	longest := k.config.window
	for _, c := range cells {
		longest = max(longest, c.Record.Window)
	}
	return longest
}

// skewOf returns how far our clock is ahead of that of most holders of these cells of others, and how many
// they are.
func (k *Keeper) skewOf(cells []grant.Cell) (skew time.Duration, nodes int) {
	var clocks []uint64
	for _, c := range cells {
		clocks = append(clocks, clockOf(c.Record))
	}
	theirs, nodes := commonest(clocks, k.longestOf(cells))
	if nodes == 0 {
		return 0, 0
	}
	return k.span(theirs, k.tick()), nodes
}

// far reports whether a skew that these cells show is beyond the limit of WithFleetCheck.
func (k *Keeper) far(skew time.Duration, cells []grant.Cell) bool {
	return skew.Abs()-k.span(0, k.longestOf(cells))/6 > k.skew
}

func (k *Keeper) skewError(skew time.Duration, nodes int) error {
	direction := "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	return drive.Wrap(fmt.Sprintf("clock is about %s %s the fleet, by the grants of %d nodes (limit %s): set it right; IDs stay unique, but may not sort with the others'", span.Text(skew.Abs().Round(time.Second)), direction, nodes, k.skew), ErrSkew)
}

// clockOf is the tick that a holder's clock most likely showed when it wrote the record.
func clockOf(r cell.Node) uint64 { return r.Limit - min(r.Limit, r.Window/6*5) }

// commonest returns the time of the largest group of clocks that lie within width, and the
// size of the group. The clocks of crashed holders lie scattered in the past; those of
// living holders lie together. Of several groups of that size the latest counts.
func commonest(clocks []uint64, width uint64) (at uint64, n int) {
	slices.Sort(clocks)
	first := 0
	for last, clock := range clocks {
		for clock-clocks[first] > width {
			first++
		}
		if group := last - first + 1; group >= n {
			at, n = clocks[first+group/2], group
		}
	}
	return at, n
}

// sighting is the version of a cell and the elapsed time at which it was first read.
type sighting struct {
	version uint64
	since   time.Duration
}

// maxSeen bounds the sightings. Beyond it, they are dropped, and the limits of the cells
// decide.
const maxSeen = 4096

// sight notes whether a cell has had its version for two windows of our own time.
func (k *Keeper) sight(c *grant.Cell) {
	if k.locking() || c.Record.Holder == "" || k.pinned() {
		return
	}
	s, ok := k.seen[c.Node]
	if !ok || s.version != c.Version {
		if len(k.seen) >= maxSeen {
			clear(k.seen)
		}
		s = sighting{version: c.Version, since: k.elapsed()}
		k.seen[c.Node] = s
	}
	c.Still = (k.elapsed()-s.since)/2 >= k.span(0, max(c.Record.Window, k.config.window)) // twice the span may overflow
}
