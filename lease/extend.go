package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/generator"
)

// extend moves the limit of the cell that is held on. If that turns out to have
// been taken by another, it claims a new one: what is left of the old grant is ours
// still, and is used meanwhile.
func (k *Keeper) extend(ctx context.Context) error {
	h := k.held
	r := k.record(max(h.limit, min(k.front()+k.window, k.maxLimit())))
	cell, err := k.swap(ctx, h.cell, r)
	if err == nil {
		k.extended(cell, r.Limit)
		return nil
	}
	if !errors.Is(err, ErrConflict) {
		h.writes[r.Write] = true
	}
	now, is, readErr := k.read(ctx, h.cell.Node)
	switch {
	case errors.Is(readErr, ErrDamaged):
		return readErr // which nobody mends but people
	case readErr != nil || now.Version == h.cell.Version:
		return err // nothing has landed yet, as far as anybody knows
	case h.writes[is.Write]: // one of unknown outcome has
		k.extended(now, is.Limit)
		return nil
	}
	return k.lost(ctx, is)
}

// extended notes that the cell has our limit.
func (k *Keeper) extended(cell Cell, limit uint64) {
	h := k.held
	h.cell, h.limit = cell, limit
	clear(h.writes)
	k.written()
	k.counters.extensions.Add(1)
	k.log.Debug("lease: extended", "node", cell.Node, "until", k.time(limit))
}

// lost notes that another has taken the cell, as its record says, and claims a new
// one unless it had to be this.
func (k *Keeper) lost(ctx context.Context, is record) error {
	h := k.held
	node := h.cell.Node
	k.counters.conflicts.Add(1)
	by := "another process took it"
	switch is.Holder {
	case k.token:
		by = "a copy of this process's memory wrote to it: a snapshot was restored beside its original"
		k.token = k.random()
	case "":
		by = "another process took it and gave it back, or an operator released it"
	}
	attrs := []any{"node", node, "ours until", k.time(h.limit)}
	if is.Owner != "" {
		attrs = append(attrs, "holder", is.Owner)
	}
	k.log.Warn("lease: lost, "+by, attrs...)
	h.unlock()
	k.held = nil
	if k.pinned() {
		return &HeldError{Node: node, Owner: is.Owner, Err: fmt.Errorf("%w: %s: %w", ErrConflict, by, generator.ErrLost)}
	}
	return k.claim(ctx)
}

// record returns a new one of ours.
func (k *Keeper) record(limit uint64) record {
	return record{
		Holder: k.token, Owner: k.owner, Limit: limit, Until: k.time(limit).Format(timeFormat),
		Window: k.window, Write: k.random(), Layout: k.spec,
	}
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// list, read and swap are the store's, each within the timeout, with the errors of
// this package.
func (k *Keeper) list(ctx context.Context) ([]Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	cells, err := k.store.List(ctx)
	return cells, k.storeError("list", -1, err)
}

func (k *Keeper) read(ctx context.Context, node int64) (Cell, record, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	cell, err := k.store.Read(ctx, node)
	if err != nil || cell.Version == 0 {
		return cell, record{}, k.storeError("read", node, err)
	}
	r, err := k.decode(cell)
	return cell, r, err
}

// decode reads the record of a cell, and counts one that cannot be read.
func (k *Keeper) decode(cell Cell) (record, error) {
	r, err := decode(cell)
	if err != nil {
		k.counters.failures.Add(1)
	}
	return r, err
}

func (k *Keeper) swap(ctx context.Context, old Cell, r record) (Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	cell, err := k.store.Swap(ctx, old, r.encode())
	return cell, k.storeError("swap", old.Node, err)
}

// lock locks a cell where the store can.
func (k *Keeper) lock(ctx context.Context, node int64) (unlock func(), err error) {
	if k.locker == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	return k.locker.TryLock(ctx, node)
}

func (k *Keeper) storeError(op string, node int64, err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrConflict) {
		k.counters.failures.Add(1)
	}
	if errors.Is(err, ErrDamaged) {
		return err // the store does answer, and asking again does not mend it
	}
	return &StoreError{Op: op, Node: node, Since: k.since, Err: err}
}
