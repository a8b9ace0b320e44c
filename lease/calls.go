package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/stores"
)

// All calls of the store go through k.calls, whose type says what their errors wrap.

// list lists the cells of a range of keys, at most limit. Damaged ones may be missing.
func (k *Keeper) list(ctx context.Context, from, to string, limit int) ([]protocol.Cell, error) {
	list, err := k.calls.List(ctx, from, to, limit)
	if errors.Is(err, stores.ErrDamaged) {
		k.damaged(-1, err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	cells := make([]protocol.Cell, 0, len(list))
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
	return cells, nil
}

// readCell reads the cell of a node number.
func (k *Keeper) readCell(ctx context.Context, node int64) (protocol.Cell, error) {
	c, err := k.calls.Read(ctx, cell.NodeKey(node))
	if errors.Is(err, stores.ErrDamaged) {
		k.damaged(node, err)
		return protocol.Cell{Node: node, Damaged: true}, nil
	}
	if err != nil || c.Version == 0 {
		return protocol.Cell{Node: node}, err
	}
	return k.decode(node, c)
}

// swap carries out the write of a decision.
func (k *Keeper) swap(ctx context.Context, d protocol.Decision) (version uint64, err error) {
	return k.calls.Swap(ctx, cell.NodeKey(d.Node), d.Version, k.encode(d.Record))
}

// lock locks a cell if the store is a Locker, and else does nothing.
func (k *Keeper) lock(ctx context.Context, node int64) (unlock func(), err error) {
	return k.calls.TryLock(ctx, cell.NodeKey(node))
}

// callFailed completes the error of a call of the store.
func (k *Keeper) callFailed(e *drive.CallError) {
	k.counters.failures.Add(1)
	e.Since = k.since
}

// watch notes if a call of the store ends much later than its timeout: then this process did not
// run meanwhile.
func (k *Keeper) watch() (done func()) {
	began := k.elapsed()
	return func() { k.ranLate(k.elapsed() - began - k.timeout) }
}

// decode reads the record of a cell. The error is a [*LayoutMismatchError].
func (k *Keeper) decode(node int64, found stores.Cell) (protocol.Cell, error) {
	c := protocol.Cell{Node: node, Version: found.Version}
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
	if !r.Reserved {
		k.most = max(k.most, r.Limit)
	}
	return c, nil
}

// damaged notes a cell that cannot be read, or, if node is -1, that a list lacks some
// cells. It costs only that number, and is logged once.
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
	if node < 0 {
		return err
	}
	if errors.Is(err, cell.ErrNewer) {
		return fmt.Errorf("cell of node number %d: %w", node, err)
	}
	return drive.Wrap(fmt.Sprintf("cell of node number %d cannot be read: %s: restore it, or, if no process can still issue IDs with that number, and the clock is past all its IDs, delete it", node, drive.OneLine(err)), err)
}

// checkLayout checks that the store's cells are for our layout. It writes the cell of the
// layout if there is none.
func (k *Keeper) checkLayout(ctx context.Context) (created bool, err error) {
	for range drive.InARow {
		c, err := k.calls.Read(ctx, cell.LayoutKey)
		if err != nil {
			return false, err
		}
		if c.Version == 0 {
			_, err := k.calls.Swap(ctx, cell.LayoutKey, 0, cell.Layout{Layout: k.spec}.Encode())
			if errors.Is(err, stores.ErrConflict) {
				continue
			}
			return true, err
		}
		r, err := cell.DecodeLayout(c.Value)
		if err == nil {
			err = k.fits(r.Layout)
		}
		if err == nil {
			err = movedError(r.Move)
		}
		if errors.Is(err, stores.ErrDamaged) {
			err = fmt.Errorf("cell of the layout: %w", err)
		}
		return false, err
	}
	return false, k.busy()
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
	return &LayoutMismatchError{Ours: ours, Theirs: theirs.Clone()}
}
