package lease

import (
	"context"
	"fmt"
	"slices"
)

// checkFleet compares our clock with those of the others, as far as the cells they
// hold tell: a holder keeps its limit between two thirds and a whole of its window
// ahead of its clock. It returns the error to fail with.
func (k *Keeper) checkFleet(ctx context.Context, cells []Cell, records []record) error {
	skew := k.skewOf(records)
	if skew == nil {
		return nil
	}
	if !k.strict || k.holder != nil || k.used.Limit > 0 { // an error is for the first claim
		if !k.warned { // and not again at each try
			k.log.Warn("lease: " + skew.Error())
		}
		k.warned = true
		return nil
	}
	// A fleet that stopped as a whole looks as one whose clocks are behind ours.
	// Those who live write again within a third of their window.
	versions := make(map[int64]uint64, len(cells))
	for _, cell := range cells {
		versions[cell.Node] = cell.Version
	}
	select {
	case <-k.after(k.period / 2):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), skew)
	}
	cells, err := k.list(ctx)
	if err != nil {
		return err
	}
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return versions[c.Node] == c.Version })
	if records, err = k.records(cells); err != nil {
		return err
	}
	if skew := k.skewOf(records); skew != nil {
		return skew
	}
	return nil
}

// skewOf returns how far our clock is from that of most holders, if that is too far,
// or nil.
func (k *Keeper) skewOf(records []record) *SkewError {
	var clocks []uint64
	for _, r := range records {
		if r.Holder != "" && r.Holder != k.token && r.Limit < k.maxLimit() {
			clocks = append(clocks, r.clock())
		}
	}
	theirs, nodes := commonest(clocks, k.window)
	if nodes == 0 {
		k.counters.skew.Store(0)
		return nil
	}
	skew := k.span(theirs, k.tick())
	k.counters.skew.Store(int64(skew))
	if skew.Abs() <= k.skew+k.span(0, k.window)/6 || skew > 0 && (nodes < leastFleet || k.locker != nil) {
		return nil
	}
	return &SkewError{Skew: skew, Limit: k.skew, Nodes: nodes}
}

// leastFleet is how many others must agree that our clock is ahead. One or two may
// just have crashed some time ago, and on a [Locker]'s single host all of them have.
const leastFleet = 3

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
