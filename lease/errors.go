package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// The sentinels that errors of this package wrap. The texts of the errors have the numbers.
var (
	// ErrClosed is returned for a [Keeper] that was closed, for good.
	ErrClosed = errors.New("lease is closed: claim a new one")
	// ErrLost is wrapped by [Keeper.Err] if there will be no further grant, ever. A call
	// that waits for a grant ends with it.
	ErrLost = stores.Permanent.New("lost for good")
	// ErrHeld: the node number is held by another living process, or it is reserved. If a process took the
	// number over, the error wraps [ErrLost] as well.
	ErrHeld = stores.Transient.New("node number is held")
	// ErrSkew: the clock is far behind the fleet's, and the claim has [WithStrictFleetCheck]; or, of [EndFleet], most
	// limits are far ahead of it.
	ErrSkew = stores.Permanent.New("clock is far from the fleet's")
	// ErrStore: an operation of the store failed; the cause is wrapped, and [stores.KindOf]
	// tells whether the store refused it. A write may have taken effect all the same; a
	// Keeper finds that out by itself.
	ErrStore = drive.ErrStore
	// ErrEndOfTime: no node number has ticks left before the end of the layout's time.
	ErrEndOfTime = stores.Permanent.New("no time is left in the layout")
	// ErrNotReleased: a lease was closed, and its release failed. The only effect is that the node number stays
	// held until it expires.
	ErrNotReleased = errors.New("node number was not released")
	// ErrMoved: the fleet, or the node number, was moved to another store by [EndFleet]. The text names
	// that store.
	ErrMoved = stores.Permanent.New("the fleet was moved")
	// ErrNeverClaimed: a node number has no cell in the store.
	ErrNeverClaimed = errors.New("was never claimed in this store: check the store and the namespace")
)

// errBound is the error for a [Keeper] that another generator uses.
var errBound = errors.New("lease is bound to another generator: claim one for each")

// NoFreeNodeError reports that every node number is held. A caller decides by Held and Nodes whether the layout is
// too small for the fleet.
type NoFreeNodeError struct {
	Held  int64 // node numbers that are held, reserved or damaged
	Nodes int64 // node numbers that the store has

	Until time.Time // the first end of a reservation, if all of Held are reserved, else zero
}

func (e *NoFreeNodeError) Error() string {
	are, wait := "held or reserved", "for 2 windows, end processes"
	if !e.Until.IsZero() {
		are, wait = "reserved", "until "+e.Until.Format(timeFormat)
	}
	return fmt.Sprintf("no free node number: %d of %d are %s: wait %s, or use a layout of more node bits in a new namespace", e.Held, e.Nodes, are, wait)
}

// Is reports whether target is [stores.Transient].
func (e *NoFreeNodeError) Is(target error) bool { return target == stores.Transient }

// LayoutMismatchError reports a store whose cells are for IDs of another layout: in the
// two layouts the same node number means different IDs. A program decides by Theirs
// whether to use that layout.
type LayoutMismatchError struct{ Ours, Theirs snowflake.Layout }

func (e *LayoutMismatchError) Error() string {
	return fmt.Sprintf("the IDs of this store have the layout %s, and not %s: use that layout, or, if their IDs and yours never meet, another namespace or directory (give 'tickflake lease fleet' or 'lease reserve' --layout there)", e.Theirs, e.Ours)
}

// Is reports whether target is [stores.Permanent].
func (e *LayoutMismatchError) Is(target error) bool { return target == stores.Permanent }

func heldError(node int64, owner string, more ...error) error {
	if owner = drive.Printable(owner); owner == "" {
		owner = "another process"
	}
	return drive.Wrap(fmt.Sprintf("node number %d is held by %s: end that process, or use another number", node, owner), append([]error{ErrHeld}, more...)...)
}

// endedError is the error for a fleet that has ended.
func endedError(f *cell.Fleet) error {
	return fmt.Errorf("%w to %s, and nothing is granted here any more: start this process with that store, once its fleet was created", ErrMoved, cell.Where(f.Gone[len(f.Gone)-1].Store))
}

func movedError(node int64, to string, more ...error) error {
	return drive.Wrap(fmt.Sprintf("node number %d was moved to %s: start this process with that store, or with another number", node, cell.Where(to)), append(more, ErrMoved)...)
}

// takenError is the error for a number whose cell says that another has it: a store, an operator or a process.
func takenError(node int64, r cell.Node, more ...error) error {
	switch {
	case r.MovedTo != "":
		return movedError(node, r.MovedTo, more...)
	case r.Past != "":
		return drive.Wrap(fmt.Sprintf("node number %d was given to the past, for good: use another number; IDs for old rows come from generator.OpenPast", node), append(more, ErrHeld, stores.Permanent)...)
	case r.Reserved:
		return drive.Wrap(fmt.Sprintf("node number %d is reserved until %s: wait until then, or use another number", node, r.Until), append(more, ErrHeld, stores.Permanent)...)
	}
	return heldError(node, r.Owner, more...)
}
