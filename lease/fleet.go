package lease

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// checkFleet compares our clock with those of the others, as far as the cells they
// hold tell: a holder keeps its limit between two thirds and a whole of its window
// ahead of its clock. It returns the error to fail with.
//
// What crashed some time ago, one process or the whole fleet, looks as if its clock were
// behind ours. Those who live write again within a third of their window: only their
// word counts for a clock that is ahead. An error, for the first claim only, waits for
// that; a warning comes with the first extension.
func (k *Keeper) checkFleet(ctx context.Context, cells []Cell, records []record) error {
	k.doubted = nil
	skew, far := k.skewOf(records)
	switch {
	case far != nil && k.strict && k.holder == nil && k.used.Limit == 0:
		select {
		case <-k.after(k.period / 2):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errorOf(ctx), far)
		}
		far, err := k.checkLiving(ctx, versionsOf(cells))
		if far != nil {
			return far
		}
		return err
	case skew > k.span(0, k.window)/3:
		k.doubted, k.livingBy = versionsOf(cells), k.elapsed()+k.span(0, k.window)/3
		skew = 0
	case far != nil:
		k.warnOf(far)
	}
	k.counters.skew.Store(int64(skew))
	return nil
}

// checkDoubted compares our clock with those of the holders that have written since
// the claim that found ours to be ahead.
func (k *Keeper) checkDoubted(ctx context.Context) {
	far, err := k.checkLiving(ctx, k.doubted)
	if err != nil {
		return // at the next extension, then
	}
	k.doubted = nil
	if far != nil {
		k.warnOf(far)
	}
}

// checkLiving compares our clock with those of the holders whose cells have other
// versions by now.
func (k *Keeper) checkLiving(ctx context.Context, versions map[int64]uint64) (far *SkewError, err error) {
	cells, err := k.list(ctx)
	if err != nil {
		return nil, err
	}
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return versions[c.Node] == c.Version })
	records, err := k.records(cells)
	if err != nil {
		return nil, err
	}
	skew, far := k.skewOf(records)
	k.counters.skew.Store(int64(skew))
	return far, nil
}

func (k *Keeper) warnOf(far *SkewError) {
	if !k.warned { // and not again at each try
		k.log.Warn("lease: " + far.Error())
	}
	k.warned = true
}

func versionsOf(cells []Cell) map[int64]uint64 {
	versions := make(map[int64]uint64, len(cells))
	for _, cell := range cells {
		versions[cell.Node] = cell.Version
	}
	return versions
}

// skewOf returns how far our clock is ahead of that of most holders, and an error if
// it is too far from it.
func (k *Keeper) skewOf(records []record) (time.Duration, *SkewError) {
	var clocks []uint64
	for _, r := range records {
		if r.Holder != "" && r.Holder != k.token && r.Limit < k.maxLimit() {
			clocks = append(clocks, r.clock())
		}
	}
	theirs, nodes := commonest(clocks, k.window)
	if nodes == 0 {
		return 0, nil
	}
	skew := k.span(theirs, k.tick())
	if skew.Abs()-k.span(0, k.window)/6 <= k.skew {
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
