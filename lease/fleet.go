package lease

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// checkFleet compares our clock with those of the others, as far as the cells they
// hold tell: a holder keeps its limit between two thirds and a whole of its window
// ahead of its clock. It returns the cells to choose from, which are newer if it had to
// wait, and the error to fail with.
//
// What crashed, one process or the whole fleet, may leave a limit that is far from all
// clocks. Those who live write again within a third of their window, and only their
// word counts: an error, for the first claim only, waits for that, and a warning comes
// when it is there.
func (k *Keeper) checkFleet(ctx context.Context, cells []Cell, records []record) ([]Cell, []record, error) {
	k.doubt = doubt{}
	skew, far := k.skewOf(cells, records)
	if far != nil && k.strict && k.holder == nil && k.used.Limit == 0 && !(skew > 0 && (far.Nodes < leastFleet || k.locker != nil)) {
		select {
		case <-k.after(k.period / 2):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w: whether the others live could not be waited for: %w", errorOf(ctx), far)
		}
		before := versionsOf(cells)
		var err error
		if cells, records, err = k.listAll(ctx); err != nil {
			return nil, nil, err
		}
		skew, far, _ = k.skewOfLiving(before, cells, records)
		k.counters.skew.Store(int64(skew))
		if far != nil {
			return nil, nil, far
		}
		return cells, records, nil
	}
	if skew.Abs() > k.span(0, k.window)/3 {
		longest := k.window
		for _, r := range records {
			longest = max(longest, r.Window)
		}
		third := k.span(0, longest) / 3
		k.doubt = doubt{versions: versionsOf(cells), again: third, due: k.elapsed() + third}
		skew = 0
	}
	k.counters.skew.Store(int64(skew))
	return cells, records, nil
}

// leastFleet is how many others must agree that our clock is ahead for a first claim to
// wait for signs of their life. One or two may just have crashed some time ago, and on a
// [Locker]'s single host all of them have.
const leastFleet = 3

// doubt is that the clock may be far from the fleet's, until it is known which of those
// live by whose cells it is.
type doubt struct {
	versions map[int64]uint64 // of the cells at the claim; nil if there is no doubt
	due      time.Duration    // when all who live should have written again, in elapsed time
	again    time.Duration    // how long after that it is asked again
	asked    int
}

// settle compares our clock with those of the holders that have written since the claim.
// It keeps extensions waiting for no longer than one that fails, and asks a few times at
// most.
func (k *Keeper) settle(ctx context.Context) {
	d := &k.doubt
	if d.versions == nil || k.elapsed() < d.due {
		return
	}
	d.due += d.again
	d.asked++
	bounded, cancel := context.WithTimeout(ctx, k.brief)
	defer cancel()
	cells, records, err := k.listAll(bounded)
	living := 0
	if err == nil {
		var skew time.Duration
		var far *SkewError
		skew, far, living = k.skewOfLiving(d.versions, cells, records)
		k.counters.skew.Store(int64(skew))
		if far != nil {
			k.log.Warn("lease: " + far.Error())
		}
	}
	if living > 0 || d.asked == 3 {
		k.doubt = doubt{}
	}
}

func versionsOf(cells []Cell) map[int64]uint64 {
	versions := make(map[int64]uint64, len(cells))
	for _, cell := range cells {
		versions[cell.Node] = cell.Version
	}
	return versions
}

// skewOfLiving is skewOf those who have written since the cells had these versions, and
// how many they are.
func (k *Keeper) skewOfLiving(versions map[int64]uint64, cells []Cell, records []record) (skew time.Duration, far *SkewError, living int) {
	var wrote []Cell
	var theirs []record
	for i, cell := range cells {
		if versions[cell.Node] != cell.Version && k.tells(cell, records[i]) {
			wrote, theirs = append(wrote, cell), append(theirs, records[i])
		}
	}
	skew, far = k.skewOf(wrote, theirs)
	return skew, far, len(wrote)
}

// tells reports whether a cell tells of the clock of another process.
func (k *Keeper) tells(cell Cell, r record) bool {
	return r.Holder != "" && r.Holder != k.token && r.Limit < k.maxLimit() && !(k.pinned() && cell.Node == k.node)
}

// skewOf returns how far our clock is ahead of that of most holders, and an error if
// it is too far from it.
func (k *Keeper) skewOf(cells []Cell, records []record) (time.Duration, *SkewError) {
	var clocks []uint64
	window := k.window
	for i, r := range records {
		if k.tells(cells[i], r) {
			clocks = append(clocks, r.clock())
			window = max(window, r.Window)
		}
	}
	theirs, nodes := commonest(clocks, window)
	if nodes == 0 {
		return 0, nil
	}
	skew := k.span(theirs, k.tick())
	if skew.Abs()-k.span(0, window)/6 <= k.skew {
		return skew, nil
	}
	return skew, &SkewError{Skew: skew, Limit: k.skew, Nodes: nodes}
}

// clock is the tick that a holder's clock most likely showed when it wrote the
// record.
func (r record) clock() uint64 { return r.Limit - min(r.Limit, r.Window/6*5) }

// commonest returns the time that most of clocks agree on within width, and how many
// those are. What crashed holders left lies scattered in the past; those who live
// stand together. Of several such groups the latest counts.
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
