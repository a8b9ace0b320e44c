package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/stores"
)

// keys are the cells of a store by their keys: those of node numbers, and the fleet's. A keeper reads and writes
// them by it, and so does a function for operators, which holds no number.
type keys struct {
	config
	calls drive.Calls
	fleet cell.Fleet // as it was read last
}

func newKeys(ctx context.Context, store stores.Store, options []Option) (keys, error) {
	c, err := configure(ctx, store, options)
	return keys{config: c, calls: drive.Calls{Store: store, Timeout: c.timeout}}, err
}

// list lists the cells of a range of keys, at most limit, in the order of their numbers. It tells damaged of each
// one that cannot be read.
func (k *keys) list(ctx context.Context, from, to string, limit int, damaged func(node int64, err error)) ([]grant.Cell, error) {
	list, err := k.calls.List(ctx, from, to, limit)
	if err != nil && !errors.Is(err, stores.ErrDamaged) {
		return nil, err
	}
	cells := make([]grant.Cell, 0, len(list))
	for _, bad := range drive.DamagedCells(err) {
		if node, ok := cell.NodeOf(bad.Key); ok && node < k.nodes() {
			damaged(node, damagedError(node, bad))
			cells = append(cells, grant.Cell{Node: node, Damaged: true})
		}
	}
	for _, found := range list {
		node, ok := cell.NodeOf(found.Key)
		if !ok || node >= k.nodes() {
			continue
		}
		c, err := k.decode(node, found)
		if c.Damaged {
			damaged(node, err)
		} else if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b grant.Cell) int { return cmp.Compare(a.Node, b.Node) })
	return cells, nil
}

// readCell reads the cell of a node number. The error of one that is Damaged wraps [stores.ErrDamaged].
func (k *keys) readCell(ctx context.Context, node int64) (grant.Cell, error) {
	found, err := k.calls.Read(ctx, cell.NodeKey(node))
	if err != nil || found.Version == 0 {
		return grant.Cell{Node: node, Damaged: errors.Is(err, stores.ErrDamaged)}, notRead(node, err)
	}
	return k.decode(node, found)
}

// lock locks the cell of a node number if the store has locks. unlock is not nil, also with an error.
func (k *keys) lock(ctx context.Context, node int64) (unlock func(), err error) {
	unlock, err = k.calls.TryLock(ctx, cell.NodeKey(node))
	return unlock, notRead(node, err)
}

// swap writes the cell of a node number.
func (k *keys) swap(ctx context.Context, node int64, version uint64, r cell.Node) (uint64, error) {
	version, err := k.calls.Swap(ctx, cell.NodeKey(node), version, k.encode(r))
	return version, notRead(node, err)
}

// decode reads the record of a cell. The error of one that is not Damaged is a [*LayoutMismatchError].
func (k *keys) decode(node int64, found stores.Cell) (grant.Cell, error) {
	c := grant.Cell{Node: node, Version: found.Version}
	r, err := cell.DecodeNode(found.Value)
	if err == nil {
		err = k.fits(r.Layout)
	}
	switch {
	case errors.Is(err, stores.ErrDamaged):
		c.Damaged = true
		return c, damagedError(node, err)
	case err == nil:
		c.Record = r
	}
	return c, err
}

// notRead names the node number in the error for a damaged cell.
func notRead(node int64, err error) error {
	if errors.Is(err, stores.ErrDamaged) {
		return damagedError(node, err)
	}
	return err
}

func damagedError(node int64, err error) error {
	if errors.Is(err, cell.ErrNewer) {
		return fmt.Errorf("node number %d: %w", node, err)
	}
	return drive.Wrap(fmt.Sprintf("node number %d cannot be read: %v: restore it, or, if no process can still issue IDs with that number, and the clock is past all its IDs, and it was never given to the past, delete it",
		node, err), err)
}

// checkFleet reads the fleet's cell, and makes it if there is none. The error is also that of a fleet with another
// layout, or that has ended.
func (k *keys) checkFleet(ctx context.Context) error {
	return again(func() error {
		version, err := k.readFleet(ctx)
		if err == nil && version == 0 {
			_, err = k.swapFleet(ctx, 0, k.newFleet(cell.AllNodes(k.layout)))
		}
		return err
	})
}

// again makes a change, which reads a cell and writes it, until its write meets no other, and a few times at most.
// Another error is returned at once, as that of a change within it: after a write of unknown outcome, a second call of the
// user repeats it.
func again(change func() error) error {
	for range drive.InARow {
		if err := change(); !errors.Is(err, stores.ErrConflict) || errors.Is(err, ErrStore) {
			return err
		}
	}
	return errBusy
}

// readFleet reads the fleet's cell into k.fleet: its version is 0 if there is none.
func (k *keys) readFleet(ctx context.Context) (version uint64, err error) {
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
func (k *keys) swapFleet(ctx context.Context, version uint64, f cell.Fleet) (uint64, error) {
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
func (k *keys) newFleet(nodes cell.Nodes) cell.Fleet {
	f := cell.Fleet{Layout: k.spec, Nodes: nodes}
	if k.traits.Scattered {
		f.First = nodes.From + rand.Int64N(nodes.To-nodes.From)
	}
	return f
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
	if theirs.TimeBits == ours.TimeBits && theirs.NodeBits == ours.NodeBits && theirs.SequenceBits == ours.SequenceBits && theirs.Order == ours.Order &&
		theirs.Tick == ours.Tick && theirs.Epoch.Equal(ours.Epoch) {
		return nil // other names of parts
	}
	return &LayoutMismatchError{Ours: ours, Theirs: theirs}
}
