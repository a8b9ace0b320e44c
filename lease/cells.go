package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/stores"
)

// This file reads the cells of node numbers and of the layout.

// list lists the cells of a range of keys, at most limit. Damaged ones may be missing.
func (k *Keeper) list(ctx context.Context, from, to string, limit int) ([]grant.Cell, error) {
	list, err := k.calls.List(ctx, from, to, limit)
	if err != nil && !errors.Is(err, stores.ErrDamaged) {
		return nil, err
	}
	for _, bad := range drive.DamagedCells(err) {
		if node, ok := cell.NodeOf(bad.Key); ok && node < k.nodes() {
			k.damaged(node, bad)
		}
	}
	cells := make([]grant.Cell, 0, len(list))
	for _, found := range list {
		node, ok := cell.NodeOf(found.Key)
		if !ok || node >= k.nodes() {
			continue
		}
		c, err := k.decode(node, found)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	k.machine.Learn(cells...)
	return cells, nil
}

// readCell reads the cell of a node number.
func (k *Keeper) readCell(ctx context.Context, node int64) (grant.Cell, error) {
	found, err := k.calls.Read(ctx, cell.NodeKey(node))
	if errors.Is(err, stores.ErrDamaged) {
		k.damaged(node, err)
		return grant.Cell{Node: node, Damaged: true}, nil
	}
	if err != nil || found.Version == 0 {
		return grant.Cell{Node: node}, err
	}
	return k.decode(node, found)
}

// lock locks a cell if the store has locks, until unlock.
func (k *Keeper) lock(ctx context.Context, node int64) error {
	unlock, err := k.calls.TryLock(ctx, cell.NodeKey(node))
	if err == nil {
		k.locks[node] = unlock
	}
	return err
}

// unlock unlocks all cells but those that are kept.
func (k *Keeper) unlock(kept func(node int64) bool) {
	for node, unlock := range k.locks {
		if !kept(node) {
			delete(k.locks, node)
			unlock()
		}
	}
}

// decode reads the record of a cell. The error is a [*LayoutMismatchError].
func (k *Keeper) decode(node int64, found stores.Cell) (grant.Cell, error) {
	c := grant.Cell{Node: node, Version: found.Version}
	r, err := cell.DecodeNode(found.Value)
	if err == nil {
		err = k.fits(r.Layout)
	}
	if errors.Is(err, stores.ErrDamaged) {
		k.damaged(node, err)
		c.Damaged = true
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Record = r
	return c, nil
}

// damaged notes a cell that cannot be read. It costs only that number, and is logged once.
func (k *Keeper) damaged(node int64, err error) {
	k.counters.failures.Add(1)
	if k.bad[node] != nil {
		return
	}
	many := len(k.bad) >= maxDamaged
	if many {
		for other := range k.bad {
			delete(k.bad, other)
			break
		}
	}
	k.bad[node] = damagedError(node, err)
	if !many {
		k.log.Error("lease: "+k.bad[node].Error(), "node", node, kindAttr(err))
	}
}

// maxDamaged bounds the damaged cells that are remembered and logged. Further cells are not
// logged: every claim would log all of them.
const maxDamaged = 64

func damagedError(node int64, err error) error {
	if errors.Is(err, cell.ErrNewer) {
		return fmt.Errorf("node number %d: %w", node, err)
	}
	return drive.Wrap(fmt.Sprintf("node number %d cannot be read: %s: restore it, or, if no process can still issue IDs with that number, and the clock is past all its IDs, delete it",
		node, drive.OneLine(err)), err)
}

// checkLayout checks that the store's cells are for our layout. It writes the cell of the
// layout if there is none.
func (k *Keeper) checkLayout(ctx context.Context) error {
	for range drive.InARow {
		version, r, err := k.readLayout(ctx)
		if err != nil || version != 0 {
			return cmp.Or(err, k.fits(r.Layout), movedError(r.Move))
		}
		if _, err = k.swapLayout(ctx, 0, k.newLayout()); !errors.Is(err, stores.ErrConflict) {
			return err
		}
	}
	return k.busy()
}

// readLayout reads the cell of the layout: its version is 0 if there is none.
func (k *Keeper) readLayout(ctx context.Context) (version uint64, r cell.Layout, err error) {
	found, err := k.calls.Read(ctx, cell.LayoutKey)
	if err != nil || found.Version == 0 {
		return 0, r, err
	}
	if r, err = cell.DecodeLayout(found.Value); err != nil {
		err = fmt.Errorf("layout of the fleet: %w", err)
	}
	return found.Version, r, err
}

// swapLayout writes the cell of the layout. A store that has none is proved before.
func (k *Keeper) swapLayout(ctx context.Context, version uint64, r cell.Layout) (uint64, error) {
	if version == 0 {
		if err := k.calls.Probe(ctx); err != nil {
			return 0, err
		}
	}
	return k.calls.Swap(ctx, cell.LayoutKey, version, r.Encode())
}

// swapReserved writes the cell of a node number that no process may claim before a limit.
func (k *Keeper) swapReserved(ctx context.Context, was grant.Cell, floor, limit, window uint64) error {
	r := cell.Node{Floor: floor, Limit: limit, Window: window, Reserved: true, Write: k.random(), Last: was.Record.Names(), Layout: k.spec}
	_, err := k.calls.Swap(ctx, cell.NodeKey(was.Node), was.Version, k.encode(r))
	return err
}

// newLayout is the cell of the layout that is made for a new store.
func (k *Keeper) newLayout() cell.Layout {
	r := cell.Layout{Layout: k.spec}
	if k.traits.Scattered {
		r.First = seam.FirstNode(k.nodes())
	}
	return r
}

// fits returns a [*LayoutMismatchError] unless the layout of the text puts each slot into
// the same ID as our layout.
func (t *timeline) fits(text string) error {
	if text == t.spec {
		return nil
	}
	theirs, err := cell.ParseLayout(text)
	if err != nil {
		return err
	}
	ours := t.layout
	if theirs.NodeBits == ours.NodeBits && theirs.SequenceBits == ours.SequenceBits && theirs.Order == ours.Order &&
		theirs.Tick == ours.Tick && theirs.Epoch.Equal(ours.Epoch) {
		return nil // other names of parts, or a wider time field
	}
	return &LayoutMismatchError{Ours: ours, Theirs: theirs}
}
