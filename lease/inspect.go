package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// State says who may issue IDs with a node number.
type State uint8

// The states of a [Holding].
const (
	Damaged   State = iota // its cell cannot be read, so nobody may
	Held                   // a process holds it
	Released               // the last process gave it back
	Abandoned              // the last process ended without that; it is free, too
)

// String returns the name of the state, such as "held".
func (s State) String() string {
	if names := [...]string{"damaged", "held", "released", "abandoned"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Holding is what a [Store] tells about one node number, for people to look at.
type Holding struct {
	Node  int64
	State State
	// Owner is the text by which the last holder wanted to be known, or empty if it
	// gave the number back. Another process wrote it: it may hold anything.
	Owner string
	// Limit is the end of the time that was granted. No later holder issues IDs
	// before it.
	Limit time.Time
	// Ahead is how far the holder's clock is ahead of ours, as far as Limit tells: to
	// a sixth of Window, if its IDs do not run ahead of its clock. It is 0 unless the
	// number is Held and, unless a [Locker] knows that its holder lives, Limit is still
	// to come: one that is late may be dead, and its clock as right as ours.
	Ahead  time.Duration
	Window time.Duration    // the last holder's
	Layout snowflake.Layout // of the IDs
	Err    error            // why the cell is Damaged: it wraps [ErrDamaged]
}

// Inspect returns what a store tells about every node number that was ever claimed,
// by node number. It writes nothing.
//
// A cell whose content is not a record does not hide the others. Of a store that
// cannot list some cells, the others are returned along with its error: a
// [*StoreError], or one that wraps [ErrDamaged].
//
// On a [Locker] a number is Held if its holder is alive; to find out, Inspect locks
// and at once unlocks the cells that were not given back, one after the other. That
// fails where the holder lives, and disturbs nobody. Where it succeeds, a process
// that claims in this very moment takes another number, or, if it must have this one,
// finds it held, and tries again if its context has a deadline. On other stores a
// number counts as Held until its Limit is past by a Window; nobody can tell sooner.
func Inspect(ctx context.Context, store Store) ([]Holding, error) {
	if err := checkArguments("Inspect", ctx, store); err != nil {
		return nil, err
	}
	return inspectAll(ctx, store, time.Now)
}

// InspectNode is [Inspect] for one node number. The error is a [*NeverClaimedError]
// if it has no cell, or a [*StoreError].
func InspectNode(ctx context.Context, store Store, node int64) (Holding, error) {
	if err := checkArguments("InspectNode", ctx, store); err != nil {
		return Holding{}, err
	}
	cell, err := readCell(ctx, store, node)
	if errors.Is(err, ErrDamaged) {
		return Holding{Node: node, State: Damaged, Err: err}, nil
	}
	if err != nil {
		return Holding{}, err
	}
	return inspect(ctx, store, cell, time.Now)
}

// ForceRelease gives a node number back in the place of its holder, which ended
// without doing so, so that others need not wait until that shows.
//
// It is safe even if the holder is alive after all. It does not lower the limit of
// the cell, so whoever claims the number next begins where the holder's grant ends;
// the holder issues what is left of that, finds at its next extension that the cell
// was changed, and claims another number. One that had to have this number ends with
// a [*HeldError] when its grant is used up.
//
// It does nothing to a number that was given back. The error is
//
//   - [*NeverClaimedError]: the number has no cell,
//   - [*HeldError]: the store is a [Locker], and the holder is alive,
//   - [*ChangedError]: the cell was written meanwhile, so somebody is alive,
//   - [*RecordError], or an error of the store that wraps [ErrDamaged]: the cell is
//     damaged; it is left as it is,
//   - [*StoreError]: the store failed. If it was in a swap, the number may have
//     been given back; calling again tells.
func ForceRelease(ctx context.Context, store Store, node int64) error {
	if err := checkArguments("ForceRelease", ctx, store); err != nil {
		return err
	}
	cell, err := readCell(ctx, store, node)
	if err != nil {
		return err
	}
	r, err := decode(cell)
	if err != nil || r.Holder == "" {
		return err
	}
	if locker, ok := store.(Locker); ok {
		unlock, err := locker.TryLock(ctx, node)
		switch {
		case errors.Is(err, ErrLocked):
			return &HeldError{Node: node, Owner: r.Owner, Err: err}
		case err != nil:
			return &StoreError{Op: "lock", Node: node, Err: err}
		}
		defer unlock()
	}
	owner := r.Owner
	r.Holder, r.Owner, r.Write = "", "", randomToken() // and the limit as it is
	_, err = store.Swap(ctx, cell, r.encode())
	switch {
	case errors.Is(err, ErrConflict):
		return &ChangedError{Node: node, Owner: owner, Err: err}
	case err != nil:
		return &StoreError{Op: "swap", Node: node, Err: err}
	}
	return nil
}

// NeverClaimedError reports a node number that has no cell in the store.
type NeverClaimedError struct{ Node int64 }

func (e *NeverClaimedError) Error() string {
	return fmt.Sprintf("node number %d was never claimed here: is it the right store and namespace?", e.Node)
}

// ChangedError reports a cell that [ForceRelease] read, and that another process
// wrote before it could be released. Nothing was changed.
type ChangedError struct {
	Node  int64
	Owner string // who held it when it was read
	Err   error  // the store's, which wraps ErrConflict
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("node number %d was not released, since it was extended or claimed in the same moment: its holder (%s before) is alive", e.Node, cmp.Or(e.Owner, "unknown"))
}

// Unwrap returns the store's error.
func (e *ChangedError) Unwrap() error { return e.Err }

func readCell(ctx context.Context, store Store, node int64) (Cell, error) {
	cell, err := store.Read(ctx, node)
	switch {
	case errors.Is(err, ErrDamaged): // the store has answered
		return Cell{}, err
	case err != nil:
		return Cell{}, &StoreError{Op: "read", Node: node, Err: err}
	case cell.Version == 0:
		return Cell{}, &NeverClaimedError{Node: node}
	}
	return cell, nil
}

func inspectAll(ctx context.Context, store Store, now func() time.Time) ([]Holding, error) {
	cells, err := store.List(ctx)
	if err != nil && !errors.Is(err, ErrDamaged) {
		err = &StoreError{Op: "list", Node: -1, Err: err}
	}
	cells = slices.SortedFunc(slices.Values(cells), func(a, b Cell) int { return cmp.Compare(a.Node, b.Node) })
	holdings := make([]Holding, len(cells))
	for i, cell := range cells {
		h, lockErr := inspect(ctx, store, cell, now)
		if lockErr != nil {
			return nil, lockErr
		}
		holdings[i] = h
	}
	return holdings, err
}

// inspect returns what a cell tells. Its error is one of locking it.
func inspect(ctx context.Context, store Store, cell Cell, now func() time.Time) (Holding, error) {
	damaged := func(err error) (Holding, error) {
		return Holding{Node: cell.Node, State: Damaged, Err: err}, nil
	}
	r, err := decode(cell)
	if err != nil {
		return damaged(err)
	}
	layout, err := snowflake.ParseLayout(r.Layout)
	if err != nil {
		return damaged(&RecordError{Node: cell.Node, Problem: fmt.Sprintf("its layout is %.200q", r.Layout), Err: err})
	}
	c := config{layout: layout} // it counts ticks
	h := Holding{
		Node: cell.Node, State: Released, Owner: r.Owner,
		Limit: c.time(r.Limit), Window: c.span(0, r.Window), Layout: layout,
	}
	if r.Holder == "" {
		return h, nil
	}
	h.State = Held
	if locker, ok := store.(Locker); ok {
		unlock, err := locker.TryLock(ctx, cell.Node)
		switch {
		case err == nil:
			unlock()
			h.State = Abandoned
		case !errors.Is(err, ErrLocked):
			return Holding{}, &StoreError{Op: "lock", Node: cell.Node, Err: err}
		}
	} else if r.Limit < math.MaxUint64-r.Window && c.time(r.Limit+r.Window).Before(now()) {
		h.State = Abandoned
	}
	if _, alive := store.(Locker); h.State == Held && (alive || h.Limit.After(now())) {
		h.Ahead = c.time(r.clock()).Sub(now())
	}
	return h, nil
}
