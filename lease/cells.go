package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/stores"
)

// This file reads the cells of node numbers and that of the fleet.

// list lists the cells of a range of keys, at most limit, in the order of their numbers.
func (k *Keeper) list(ctx context.Context, from, to string, limit int) ([]grant.Cell, error) {
	list, err := k.calls.List(ctx, from, to, limit)
	if err != nil && !errors.Is(err, stores.ErrDamaged) {
		return nil, err
	}
	cells := make([]grant.Cell, 0, len(list))
	for _, bad := range drive.DamagedCells(err) {
		if node, ok := cell.NodeOf(bad.Key); ok && node < k.nodes() {
			_ = k.damaged(node, bad)
			cells = append(cells, grant.Cell{Node: node, Damaged: true})
		}
	}
	for _, found := range list {
		node, ok := cell.NodeOf(found.Key)
		if !ok || node >= k.nodes() {
			continue
		}
		c, err := k.decode(node, found)
		if err != nil && !c.Damaged {
			return nil, err
		}
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b grant.Cell) int { return cmp.Compare(a.Node, b.Node) })
	k.machine.Learn(cells...)
	return cells, nil
}

// readCell reads the cell of a node number. The error of one that is Damaged wraps [stores.ErrDamaged].
func (k *Keeper) readCell(ctx context.Context, node int64) (grant.Cell, error) {
	found, err := k.calls.Read(ctx, cell.NodeKey(node))
	if errors.Is(err, stores.ErrDamaged) {
		return grant.Cell{Node: node, Damaged: true}, k.damaged(node, err)
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

// decode reads the record of a cell. The error of one that is not Damaged is a [*LayoutMismatchError].
func (k *Keeper) decode(node int64, found stores.Cell) (grant.Cell, error) {
	c := grant.Cell{Node: node, Version: found.Version}
	r, err := cell.DecodeNode(found.Value)
	if err == nil {
		err = k.fits(r.Layout)
	}
	switch {
	case errors.Is(err, stores.ErrDamaged):
		c.Damaged = true
		return c, k.damaged(node, err)
	case err == nil:
		c.Record = r
	}
	return c, err
}

// damaged notes a cell that cannot be read, and returns its error. It is logged once, unless the claim of a pinned number returns it.
func (k *Keeper) damaged(node int64, err error) error {
	k.tally(&k.stats.Failures)
	err = damagedError(node, err)
	if pinned := k.pinned() && k.machine.Held().Version == 0; !pinned && !k.bad[node] && len(k.bad) < maxDamaged {
		k.bad[node] = true
		k.log.Error("lease: "+err.Error(), "node", node, kindAttr(err))
	}
	return err
}

// maxDamaged bounds the damaged cells that are logged.
const maxDamaged = 64

func damagedError(node int64, err error) error {
	if errors.Is(err, cell.ErrNewer) {
		return fmt.Errorf("node number %d: %w", node, err)
	}
	return drive.Wrap(fmt.Sprintf("node number %d cannot be read: %v: restore it, or, if no process can still issue IDs with that number, and the clock is past all its IDs, and it was never given to the past, delete it",
		node, err), err)
}

// checkFleet reads the fleet's cell, and makes it if there is none. The error is also that of a fleet with another
// layout, or that has ended.
func (k *Keeper) checkFleet(ctx context.Context) error {
	for range drive.InARow {
		version, err := k.readFleet(ctx)
		if err != nil || version != 0 {
			return err
		}
		if _, err = k.swapFleet(ctx, 0, k.newFleet(cell.AllNodes(k.layout))); !errors.Is(err, stores.ErrConflict) {
			return err
		}
	}
	return k.busy()
}

// readFleet reads the fleet's cell into k.fleet: its version is 0 if there is none.
func (k *Keeper) readFleet(ctx context.Context) (version uint64, err error) {
	version, k.fleet, err = readFleet(ctx, &k.calls)
	if err == nil && version != 0 {
		err = k.fits(k.fleet.Layout)
	}
	if err == nil && version != 0 && k.fleet.Nodes == (cell.Nodes{}) {
		err = endedError(&k.fleet)
	}
	return version, err
}

func readFleet(ctx context.Context, calls *drive.Calls) (version uint64, f cell.Fleet, err error) {
	found, err := calls.Read(ctx, cell.FleetKey)
	if err != nil || found.Version == 0 {
		return 0, f, err
	}
	if f, err = cell.DecodeFleet(found.Value); err != nil {
		err = fmt.Errorf("cell of the fleet: %w", err)
	}
	return found.Version, f, err
}

// swapFleet writes the fleet's cell. A store that has none is proved before.
func (k *Keeper) swapFleet(ctx context.Context, version uint64, f cell.Fleet) (uint64, error) {
	if version == 0 {
		if err := k.calls.Probe(ctx); err != nil {
			return 0, err
		}
	}
	version, err := k.calls.Swap(ctx, cell.FleetKey, version, f.Encode())
	if err == nil {
		k.fleet = f
	}
	return version, err
}

// newFleet is the cell of a new fleet.
func (k *Keeper) newFleet(nodes cell.Nodes) cell.Fleet {
	f := cell.Fleet{Layout: k.spec, Nodes: nodes}
	if k.traits.Scattered {
		f.First = nodes.From + seam.FirstNode(nodes.To-nodes.From)
	}
	return f
}

// widened is the fleet's cell with our time field, if that is wider.
func (k *Keeper) widened() (f cell.Fleet, wider bool) {
	f = k.fleet
	layout, err := cell.ParseLayout(f.Layout)
	if wider = err == nil && layout.TimeBits < k.layout.TimeBits; wider {
		layout.TimeBits = k.layout.TimeBits
		f.Layout = layout.String()
	}
	return f, wider
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
