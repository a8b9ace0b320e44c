package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// State says who may issue IDs with a node number.
type State uint8

// The states of a [Holding].
const (
	Damaged  State = iota // its cell cannot be read, so no process may claim it
	Held                  // a process holds it
	Released              // the last process released it
	Expired               // the last process ended without a release; the number is free
	Reserved              // no process may claim it before its Limit: see [Reserve]
	Moved                 // it belongs to another store for good: see [EndFleet]
	OfPast                // it issues IDs for old rows, and no process claims it: see [GivePast]
	Retired               // it was OfPast, and issues nothing any more: see [RetirePast]
)

// String returns the name of the state, such as "held".
func (s State) String() string {
	if names := [...]string{"damaged", "held", "released", "expired", "reserved", "moved", "past", "retired"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Holding is the state of one node number in a store, for people to read.
type Holding struct {
	Node  int64
	State State
	// Owner is the text that the last holder gave with [WithOwner], or empty if it
	// released the number; of one that is Moved, the name of the store that has it. Another
	// process wrote it: it may contain anything.
	Owner string
	// Limit is the end of the time that was granted, or of the reservation; of a number that is Moved and
	// was never granted, the fleet's floor, or the epoch of the layout. No later holder issues IDs before it.
	Limit time.Time
	// Ahead is how far the holder's clock is ahead of ours, estimated from Limit to within a
	// sixth of Window, if its IDs do not run ahead of its clock. It is 0 unless the number is
	// Held. It is also 0 if Limit is less than two thirds of Window away: then an extension is
	// overdue, because the holder is stopped or dead, cannot reach the store, or has a clock that
	// is behind ours.
	Ahead  time.Duration
	Window time.Duration    // the last holder's
	Layout snowflake.Layout // of the IDs
	Err    error            // why the cell is Damaged: it wraps [stores.ErrDamaged]
}

// List returns the state of every node number that was ever claimed, reserved, moved or given to the past, in
// the order of the numbers. It writes nothing.
//
// A damaged cell does not hide the others. If the store cannot list some cells, List returns the others
// together with the store's error, which wraps [stores.ErrDamaged]. Any other error wraps [ErrStore].
//
// On a store with locks, such as a directory, a number is Held if its holder is alive. To find out, List locks
// the cells that were not released, one after the other, and unlocks each at once. The lock fails if the holder
// is alive, and disturbs no process. If it succeeds, a process that claims at the same moment takes another
// number, or, if its number is pinned, finds it held, and tries again if its context has a deadline. On other
// stores, and in a read-only directory, a number counts as Held until a Window after its Limit.
func List(ctx context.Context, store stores.Store) (holdings []Holding, err error) {
	if err := checkStore("List", store); err != nil {
		return nil, err
	}
	calls := &drive.Calls{Store: store}
	err = calls.All(ctx, cell.NodesFrom, cell.NodesTo, func(c stores.Cell) error {
		node, ok := cell.NodeOf(c.Key)
		if !ok {
			return nil
		}
		h, err := inspect(ctx, calls, node, c)
		if err == nil {
			holdings = append(holdings, h)
		}
		return err
	})
	if err != nil && !errors.Is(err, stores.ErrDamaged) {
		return nil, err
	}
	return holdings, err
}

// Inspect is [List] for one node number. The error wraps [ErrNeverClaimed] if the number has no cell, or
// [ErrStore].
func Inspect(ctx context.Context, store stores.Store, node int64) (Holding, error) {
	if err := checkStore("Inspect", store); err != nil {
		return Holding{}, err
	}
	calls := &drive.Calls{Store: store}
	c, err := readCell(ctx, calls, node)
	if errors.Is(err, stores.ErrDamaged) {
		return Holding{Node: node, State: Damaged, Err: err}, nil
	}
	if err != nil {
		return Holding{}, err
	}
	return inspect(ctx, calls, node, c)
}

// ForceRelease releases a node number whose holder ended without a release, so that others need not wait until
// it expires. It does nothing to a released number.
//
// It is safe even if the holder is still alive. ForceRelease does not lower the limit of the cell, so the next
// holder begins where this holder's grant ends. This holder issues the rest of its grant, finds at its next
// extension that the cell was changed, and claims another number. A holder pinned to this number fails with
// [ErrLost] once its grant is used up.
//
// The error wraps
//
//   - [ErrNeverClaimed]: the number has no cell,
//   - [ErrHeld]: the store has locks, and the holder is alive; or the number is reserved, or was given to the
//     past,
//   - [ErrMoved]: the number belongs to another store,
//   - [stores.ErrConflict]: the cell was written meanwhile, so its holder is alive,
//   - [stores.ErrDamaged]: the cell is damaged; it is left as it is,
//   - [ErrStore]: the store failed. If a swap failed, the number may be released: call again.
func ForceRelease(ctx context.Context, store stores.Store, node int64) error {
	if err := checkStore("ForceRelease", store); err != nil {
		return err
	}
	calls := &drive.Calls{Store: store}
	c, err := readCell(ctx, calls, node)
	if err != nil {
		return err
	}
	r, err := cell.DecodeNode(c.Value)
	switch {
	case err != nil:
		return damagedError(node, err)
	case r.MovedTo != "" || r.Past != "" || r.Reserved:
		return takenError(node, r)
	case r.Holder == "":
		return nil
	}
	unlock, err := calls.TryLock(ctx, c.Key)
	switch {
	case errors.Is(err, stores.ErrLocked):
		return heldError(node, r.Owner, err)
	case err != nil:
		return err
	}
	defer unlock()
	owner := r.Owner
	// The limit stays as it is, and the next claim begins there.
	r.Holder, r.Owner, r.Floor, r.Last, r.Write = "", "", r.Limit, r.Names(), cell.Token()
	_, err = calls.Swap(ctx, c.Key, c.Version, r.Encode())
	if errors.Is(err, stores.ErrConflict) {
		return fmt.Errorf("node number %d was not released, since it was extended or claimed at the same moment: its holder (%q before) is alive: %w", node, owner, err)
	}
	return notRead(node, err)
}

// readCell reads the cell of a node number that was claimed.
func readCell(ctx context.Context, calls *drive.Calls, node int64) (stores.Cell, error) {
	c, err := calls.Read(ctx, cell.NodeKey(node))
	if err == nil && c.Version == 0 {
		err = drive.Wrap(fmt.Sprintf("node number %d %v", node, ErrNeverClaimed), ErrNeverClaimed)
	}
	return c, notRead(node, err)
}

// inspect returns the state in a cell. The error is that of locking the cell.
func inspect(ctx context.Context, calls *drive.Calls, node int64, c stores.Cell) (Holding, error) {
	broken := func(err error) (Holding, error) {
		return Holding{Node: node, State: Damaged, Err: damagedError(node, err)}, nil
	}
	r, err := cell.DecodeNode(c.Value)
	if err != nil {
		return broken(err)
	}
	layout, err := cell.ParseLayout(r.Layout)
	if err != nil {
		return broken(err)
	}
	t := timeline{layout: layout}
	h := Holding{
		Node: node, State: Released, Owner: r.Owner,
		Limit: t.time(r.Limit), Window: t.between(0, r.Window), Layout: layout.Clone(),
	}
	switch {
	case r.MovedTo != "":
		h.State, h.Owner = Moved, r.MovedTo
		return h, nil
	case r.Past == cell.Given:
		h.State = OfPast
		return h, nil
	case r.Past == cell.Retired:
		h.State = Retired
		return h, nil
	case r.Reserved && h.Limit.After(time.Now()):
		h.State = Reserved
		return h, nil
	case r.Holder == "":
		return h, nil
	}
	h.State = Held
	locks := calls.Store.Traits().TryLock != nil
	if locks {
		unlock, err := calls.TryLock(ctx, c.Key)
		switch {
		case err == nil:
			unlock()
			h.State = Expired
		case errors.Is(err, stores.ErrLocked):
		case errors.Is(err, stores.Permanent): // a lock needs the right to write
			locks = false
		case errors.Is(err, stores.ErrDamaged):
			return broken(err)
		default:
			return Holding{}, err
		}
	}
	if !locks && r.Limit < t.end() && t.time(r.Limit+r.Window).Before(time.Now()) {
		h.State = Expired
	}
	if ahead := time.Until(t.time(clockOf(r))); h.State == Held && ahead >= -h.Window/6 {
		h.Ahead = ahead
	}
	return h, nil
}

// clockOf is the tick that a holder's clock most likely showed when it wrote the record.
func clockOf(r cell.Node) uint64 { return r.Limit - min(r.Limit, r.Window/6*5) }
