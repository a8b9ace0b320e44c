package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// candidate is a cell that may be claimed.
type candidate struct {
	cell   Cell
	record record // none, if it has no cell yet
	// guess: its holder may be alive, and its clock behind ours.
	guess bool
}

// triesPerClaim bounds the round trips of one claim: it lists, and then tries cells
// until one is not taken by another meanwhile.
const triesPerClaim = 4

// claim takes one free cell.
func (k *Keeper) claim(ctx context.Context) error {
	if err := k.layout.ValidateAt(k.clock.Now()); err != nil {
		return &OptionError{"WithClock", err}
	}
	cells, records, err := k.listAll(ctx)
	if err != nil {
		return err
	}
	for i, cell := range cells {
		if floor, ok := k.tries[records[i].Write]; ok { // one of unknown outcome has landed
			if unlock, err := k.lock(ctx, cell.Node); err == nil {
				k.hold(cell, floor, records[i], unlock)
				return nil
			}
		}
	}
	if cells, records, err = k.checkFleet(ctx, cells, records); err != nil {
		return err
	}
	free, full := k.choose(cells, records)
	tries := 0
	for _, c := range free {
		if tries == triesPerClaim {
			return k.storeError("swap", c.cell.Node, fmt.Errorf("%w, %d times: many claim at once", ErrConflict, tries))
		}
		unlock, err := k.lock(ctx, c.cell.Node)
		switch {
		case errors.Is(err, ErrLocked) && k.pinned():
			return &HeldError{Node: c.cell.Node, Owner: c.record.Owner, Err: err}
		case errors.Is(err, ErrLocked):
			full.Held++
			continue
		case err != nil:
			return k.storeError("lock", c.cell.Node, err)
		}
		tries++
		if k.pinned() {
			err = k.takeOwn(ctx, c, unlock)
		} else {
			err = k.take(ctx, c, unlock)
		}
		switch {
		case !errors.Is(err, ErrConflict):
			return err
		case k.pinned():
			return &HeldError{Node: c.cell.Node, Err: ErrConflict} // by whoever was faster
		}
		full.Held++ // by whoever was faster
	}
	if full.Held == 0 && len(free) == 0 {
		return &EndOfTimeError{End: k.layout.End()}
	}
	return full
}

// takeOwn takes the number that it must be, by its cell as it is now. The list of a
// cluster may be out of date, and whoever held a lock wrote the cell before it gave it
// back: the swap would fail, and nobody hold the number.
func (k *Keeper) takeOwn(ctx context.Context, c candidate, unlock func()) error {
	cell, _, err := k.read(ctx, c.cell.Node)
	if err == nil && cell.Version != 0 {
		var records []record
		if records, err = k.records([]Cell{cell}); err == nil {
			c = candidate{cell: cell, record: records[0]}
		}
	}
	if err != nil {
		unlock()
		return err
	}
	if floor, ok := k.tries[c.record.Write]; ok { // one of unknown outcome has landed
		k.hold(c.cell, floor, c.record, unlock)
		return nil
	}
	return k.take(ctx, c, unlock)
}

// take tries to make the cell c ours.
func (k *Keeper) take(ctx context.Context, c candidate, unlock func()) error {
	floor := max(k.tick(), c.record.Limit)
	if floor >= k.maxLimit() {
		// The clock has gone past the end since it was looked at last. Nothing would be
		// granted, and all the time that the cell has left be lost.
		unlock()
		return &EndOfTimeError{End: k.layout.End()}
	}
	r := k.record(min(max(floor, k.front())+k.window, k.maxLimit()))
	cell, err := k.swap(ctx, c.cell, r)
	if err == nil {
		k.hold(cell, floor, r, unlock)
		return nil
	}
	if !errors.Is(err, ErrConflict) {
		// It may have landed. If it does so later, a listing will show it, and what
		// it granted is ours even then.
		k.tries[r.Write] = floor
		if now, is, readErr := k.read(ctx, c.cell.Node); readErr == nil && is.Write == r.Write {
			k.hold(now, floor, r, unlock)
			return nil
		}
	}
	unlock()
	return err
}

// hold notes that a cell is ours.
func (k *Keeper) hold(cell Cell, floor uint64, r record, unlock func()) {
	clear(k.tries)
	clear(k.seen)
	k.held = &holding{cell: cell, floor: floor, limit: r.Limit, writes: map[string]bool{}, unlock: unlock}
	k.written()
	k.counters.claims.Add(1)
	k.log.Info("lease: claimed", "node", cell.Node, "from", k.time(floor), "until", k.time(r.Limit))
	if k.holder == nil {
		k.used = k.grant()
		k.show(k.used)
	}
}

// written notes that the store has been written, and when that is due again.
func (k *Keeper) written() {
	k.due = k.elapsed() + k.span(0, k.window)/3
	k.recovered()
}

// listAll lists the cells, and what is in them.
func (k *Keeper) listAll(ctx context.Context) ([]Cell, []record, error) {
	cells, err := k.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	records, err := k.records(cells)
	return cells, records, err
}

// records reads the cells, and sees to it that they are this fleet's.
func (k *Keeper) records(cells []Cell) ([]record, error) {
	records := make([]record, len(cells))
	for i, cell := range cells {
		r, err := k.decode(cell)
		if err == nil {
			err = r.fits(cell.Node, k.layout, k.spec)
		}
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// choose returns the cells that may be claimed, the best first, and what to say if
// none of them will do. Cells whose limit is past come first, since IDs can be issued
// at once; those whose limit is far ahead, left by a clock that ran fast, come last.
func (k *Keeper) choose(cells []Cell, records []record) ([]candidate, *NoFreeNodeError) {
	now := k.tick()
	full := &NoFreeNodeError{Nodes: k.nodes()}
	var ready, ahead []candidate
	var soonest, latest uint64
	exists := make(map[int64]bool, len(cells))
	for i, cell := range cells {
		r := records[i]
		exists[cell.Node] = true
		free, guess := k.isFree(cell, r, now)
		c := candidate{cell: cell, record: r, guess: guess}
		switch {
		case k.pinned() && cell.Node != k.node, !k.pinned() && r.Limit >= k.maxLimit(): // nothing to be had
		case !k.pinned() && !free:
			full.Held++
			if soonest == 0 || r.Limit < soonest {
				soonest = r.Limit
			}
			latest = max(latest, r.Limit)
		case r.Limit > now:
			ahead = append(ahead, c)
		default:
			ready = append(ready, c)
		}
	}
	if full.Held > 0 {
		full.Soonest, full.Latest = k.time(soonest), k.time(latest)
	}
	if k.locker != nil {
		// Those that exist before new ones, to keep the store small.
		slices.SortFunc(ready, func(a, b candidate) int { return cmp.Compare(a.cell.Node, b.cell.Node) })
	}
	ready = append(ready, k.fresh(exists)...)
	if k.locker == nil {
		// Processes that start in the same moment should not all try the same.
		k.rng.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
		slices.SortStableFunc(ready, func(a, b candidate) int { return cmp.Compare(btoi(a.guess), btoi(b.guess)) })
	}
	slices.SortStableFunc(ahead, func(a, b candidate) int { return cmp.Compare(a.record.Limit, b.record.Limit) })
	return append(ready, ahead...), full
}

// isFree reports whether a cell may be claimed, and whether that is a guess. A wrong
// one costs the other side its cell, and nobody an ID.
func (k *Keeper) isFree(cell Cell, r record, now uint64) (free, guess bool) {
	if k.locker != nil || r.Holder == "" {
		return true, false // of a Locker, the lock will tell
	}
	s, ok := k.seen[cell.Node]
	if !ok || s.version != cell.Version {
		s = sighting{version: cell.Version, since: k.elapsed()}
		k.seen[cell.Node] = s
	}
	if k.elapsed()-s.since >= 2*k.span(0, max(r.Window, k.window)) {
		return true, false
	}
	past := r.Limit+r.Window < now // by a grace
	return past, past
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fresh returns node numbers that have no cell yet: the lowest, of a Locker, and
// others from some number on. They are as many as may be claimed at the same time.
func (k *Keeper) fresh(exists map[int64]bool) (cells []candidate) {
	if k.pinned() {
		if !exists[k.node] {
			cells = append(cells, candidate{cell: Cell{Node: k.node}})
		}
		return cells
	}
	first := int64(0)
	most := 4096
	if k.locker == nil {
		first, most = k.rng.Int64N(k.nodes()), 64
	}
	for i := int64(0); i < k.nodes() && len(cells) < most; i++ {
		if node := (first + i) % k.nodes(); !exists[node] {
			cells = append(cells, candidate{cell: Cell{Node: node}})
		}
	}
	return cells
}

// mayPass reports whether waiting may help against err.
func (k *Keeper) mayPass(err error) bool {
	if errors.Is(err, fs.ErrPermission) {
		return false
	}
	var full *NoFreeNodeError
	var held *HeldError
	var store *StoreError
	return errors.As(err, &full) || errors.As(err, &held) || errors.As(err, &store)
}

// ended adds to err that ctx has ended.
func ended(err error, ctx context.Context) error {
	var full *NoFreeNodeError
	if errors.As(err, &full) && full.Err == nil {
		full.Err = errorOf(ctx)
		return full
	}
	return fmt.Errorf("%w: %w", errorOf(ctx), err)
}

// errorOf returns the error of a context that has ended, with its cause.
func errorOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
