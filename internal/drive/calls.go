package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// DefaultTimeout is how long a call of the store may take if neither an option nor a deadline of the
// caller says otherwise.
const DefaultTimeout = 2 * time.Second

// Calls makes the calls of a store. The errors of its methods wrap
//
//   - [stores.ErrConflict]: a swap found another version and changed nothing,
//   - [stores.ErrLocked]: another process has the lock,
//   - [stores.ErrDamaged]: a cell cannot be read, and a retry does not help,
//   - [ErrStore]: anything else, as a [*CallError]; the outcome of a swap is unknown.
//
// It may be used by several goroutines at once.
type Calls struct {
	Store stores.Store
	// Timeout bounds each call. If it is 0, a call may take until its context's deadline, or
	// [DefaultTimeout] if that has none.
	Timeout time.Duration
	// What stands in errors for the key, unless it is empty.
	What string
}

// Read reads a cell, as [stores.Store] does.
func (c *Calls) Read(ctx context.Context, key string) (stores.Cell, error) {
	ctx, end := c.within(ctx)
	defer end()
	cell, err := c.Store.Read(ctx, key)
	return cell, c.error("read", key, err)
}

// List lists the cells of a range of keys, at most limit, as [stores.Store] does. With an error that
// wraps [stores.ErrDamaged] it returns the cells that can be read.
func (c *Calls) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	ctx, end := c.within(ctx)
	defer end()
	cells, err := c.Store.List(ctx, from, to, limit)
	return cells, c.error("list", from, err)
}

// page is how many cells All asks for at a time.
const page = 4096

// All calls each with all cells of a range of keys, in the order of the keys. Cells that the store
// cannot read, and those for which each returns an error that wraps [stores.ErrDamaged], do not hide
// the others: the error joins theirs. Any other error of each ends it.
func (c *Calls) All(ctx context.Context, from, to string, each func(stores.Cell) error) error {
	var damaged []error
	for {
		cells, listed := c.List(ctx, from, to, page)
		if errors.Is(listed, stores.ErrDamaged) {
			damaged = append(damaged, listed)
		} else if listed != nil {
			return listed
		}
		for _, cell := range cells {
			if err := each(cell); errors.Is(err, stores.ErrDamaged) {
				damaged = append(damaged, err)
			} else if err != nil {
				return err
			}
		}
		if len(cells) < page { // damaged ones do not count
			return engine.JoinDamaged(damaged)
		}
		from = cells[len(cells)-1].Key + "\x00"
	}
}

// Swap writes a cell, as [stores.Store] does.
func (c *Calls) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	ctx, end := c.within(ctx)
	defer end()
	version, err := c.Store.Swap(ctx, key, version, value)
	return version, c.error("swap", key, err)
}

// probeTimeout bounds Probe, which makes hundreds of writes.
const probeTimeout = 10 * time.Second

// Probe looks for a server that breaks its promises before the first cell of a kind is made, if the store can: see
// [stores.Traits].
func (c *Calls) Probe(ctx context.Context) error {
	probe := c.Store.Traits().Probe
	if probe == nil {
		return nil
	}
	bounded := *c
	bounded.Timeout = max(c.Timeout, probeTimeout)
	ctx, end := bounded.within(ctx)
	defer end()
	return c.error("probe", "store", probe(ctx, false))
}

// TryLock locks a cell if the store has locks, and else does nothing. unlock is not nil,
// also with an error.
func (c *Calls) TryLock(ctx context.Context, key string) (unlock func(), err error) {
	lock := c.Store.Traits().TryLock
	if lock == nil {
		return func() {}, nil
	}
	ctx, end := c.within(ctx)
	defer end()
	if unlock, err = lock(ctx, key); err != nil {
		unlock = func() {}
	}
	return unlock, c.error("lock", key, err)
}

func (c *Calls) within(ctx context.Context) (_ context.Context, end func()) {
	timeout := c.Timeout
	if timeout == 0 {
		if _, ok := ctx.Deadline(); ok {
			return ctx, func() {}
		}
		timeout = DefaultTimeout
	}
	return context.WithTimeout(ctx, timeout)
}

func (c *Calls) error(op, key string, err error) error {
	switch {
	case err == nil, errors.Is(err, stores.ErrConflict), errors.Is(err, stores.ErrLocked), errors.Is(err, stores.ErrDamaged):
		return err
	}
	e := &CallError{Op: op, What: key, Err: err}
	if c.What != "" && !strings.Contains(err.Error(), op+" "+key) { // else the engine says which
		e.What = c.What
	}
	return e
}

// ErrStore is wrapped by the error of a call of the store that failed.
var ErrStore = errors.New("store failed")

// CallError is a call of the store that failed. It wraps [ErrStore] and Err.
type CallError struct {
	Op, What string        // such as "swap" and "node/0000007"
	Since    time.Time     // when calls began to fail, or zero for the first
	Late     time.Duration // by which the process ran late, if that explains the failure, or 0
	Err      error         // that of the store
}

func (e *CallError) Error() string {
	since := ""
	if !e.Since.IsZero() {
		since = " since " + e.Since.UTC().Format(time.RFC3339)
	}
	problem := "store does not answer"
	switch {
	case stores.KindOf(e.Err) == stores.Permanent:
		problem = "store refuses"
	case e.Late > 0:
		problem = fmt.Sprintf("%v, and woke %s late", stores.ErrOverloaded, e.Late.Round(time.Millisecond))
	case errors.Is(e.Err, stores.ErrOverloaded):
		problem = stores.ErrOverloaded.Error()
	}
	cause, call := e.Err.Error(), e.Op+" "+e.What
	if strings.Contains(cause, call) { // an engine says so itself, and in which namespace
		return fmt.Sprintf("%s%s: %s", problem, since, cause)
	}
	return fmt.Sprintf("%s%s: %s: %s", problem, since, call, cause)
}

// Unwrap returns [ErrStore] and the error of the store.
func (e *CallError) Unwrap() []error { return []error{ErrStore, e.Err} }

// Is reports whether target is [stores.ErrOverloaded] or its kind, and the process ran late.
func (e *CallError) Is(target error) bool {
	return e.Late > 0 && (target == stores.ErrOverloaded || target == stores.Transient)
}
