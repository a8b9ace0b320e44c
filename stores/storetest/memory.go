package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tickflake/tickflake/stores"
)

// Memory is a [stores.Store] in memory, with faults on demand, for tests of programs
// that use a store. Make the first with [NewMemory], and with Client one more for
// each process of the test; they share only the cells. It has no
// locks; Locking returns one that has.
//
// It is deterministic: it starts no goroutine, never sleeps, reads no clock, and draws
// no random numbers: versions count up, for all cells together. Two runs with the same
// calls are the same.
//
// A Memory is safe for use by several goroutines at once, except that Before and
// After are to be set before its first use.
type Memory struct {
	// Before, if not nil, is called at the beginning of each operation and returns
	// its fault. A scheduler can let others run in it: no lock is
	// held. If the context has ended when it returns, the operation fails with the
	// context's error and has done nothing, unless a fault says otherwise.
	Before func(context.Context, Op) Fault

	// After, if not nil, is called at the end of each operation, whether it succeeded
	// or not: after it has taken effect, and before it returns. Use it to stop a process
	// between the store's write and the return. No lock is held.
	After func(context.Context, Op)

	cells *cells

	fault  atomic.Uint32 // of Fail
	closed atomic.Bool
}

// Op is an operation on a [Memory].
type Op struct {
	Kind    OpKind
	Key     string // of a List, the key that it begins at
	Version uint64 // of a Swap, the version that it expects, else 0
	Value   []byte // of a Swap, the new value, else nil; not to be kept or changed
}

// OpKind is the kind of an [Op].
type OpKind uint8

// The operations.
const (
	OpList OpKind = iota
	OpRead
	OpSwap
	OpLock // TryLock of the traits
)

// String returns the name of the operation, such as "swap".
func (k OpKind) String() string { return [...]string{"list", "read", "swap", "lock"}[k] }

// Fault is the fault of one operation on a [Memory].
type Fault uint8

// The faults. The error of each wraps [ErrFault], and the context's error too if
// that has ended.
const (
	// None lets the operation succeed.
	None Fault = iota

	// Unavailable does nothing and returns an error: the server cannot be reached.
	Unavailable

	// ReplyLost carries the operation out and returns an error: the connection was cut
	// between the server and the client. A conflict of a
	// Swap is lost as well, so the error does not wrap [stores.ErrConflict].
	ReplyLost

	// Delayed does nothing yet and returns an error. A Swap stays in flight until
	// Deliver or Drop, and is still conditional on its version then. For any other
	// operation it is the same as Unavailable.
	Delayed
)

// ErrFault is wrapped by the error of an operation that a [Fault] spoiled.
var ErrFault = stores.Transient.New("storetest: the store cannot be reached, as the test has asked for")

// errClosed is the error of every operation after Close.
var errClosed = errors.New("storetest: the Memory is closed")

// cells is the state that all clients of a Memory share.
type cells struct {
	mu       sync.Mutex
	order    []stores.Cell // by key; the Value of each is never written to
	versions uint64        // given to a value so far, to any cell
	late     []Op
	locks    map[string]*held
}

// NewMemory returns a Memory without cells or faults.
func NewMemory() *Memory {
	return &Memory{cells: &cells{locks: make(map[string]*held)}}
}

// Client returns another client of the same cells, as another process would have.
// It has no hooks and no faults, and is open.
func (m *Memory) Client() *Memory { return &Memory{cells: m.cells} }

// Close makes every later operation of this client fail, and frees the cells that it
// has locked. It returns nil.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.Crash()
	return nil
}

// Traits returns none.
func (*Memory) Traits() stores.Traits { return stores.Traits{} }

// List returns at most limit cells with keys in [from, to), in the order of their keys.
func (m *Memory) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return do(ctx, m, Op{Kind: OpList, Key: from}, func() ([]stores.Cell, error) { return m.cells.list(from, to, limit), nil })
}

func (c *cells) list(from, to string, limit int) []stores.Cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin, _ := c.find(from)
	end, _ := c.find(to)
	n := min(end-begin, limit)
	if n <= 0 {
		return nil
	}
	list := make([]stores.Cell, 0, n)
	for _, cell := range c.order[begin : begin+n] {
		list = append(list, copied(cell))
	}
	return list
}

// find returns the place of a key in the order, and whether there is such a cell.
func (c *cells) find(key string) (int, bool) {
	return slices.BinarySearchFunc(c.order, key, func(cell stores.Cell, key string) int { return strings.Compare(cell.Key, key) })
}

// Read returns the cell of a key, or one with Version 0.
func (m *Memory) Read(ctx context.Context, key string) (stores.Cell, error) {
	return do(ctx, m, Op{Kind: OpRead, Key: key}, func() (stores.Cell, error) { return m.Peek(key), nil })
}

// Swap replaces the value of a cell, if it has that version.
func (m *Memory) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	op := Op{Kind: OpSwap, Key: key, Version: version, Value: value}
	return do(ctx, m, op, func() (uint64, error) { return m.cells.swap(key, version, value) })
}

// Peek returns the same as Read, but is no operation: it has no faults and calls no
// hook. Tests use it to look at a cell.
func (m *Memory) Peek(key string) stores.Cell {
	m.cells.mu.Lock()
	defer m.cells.mu.Unlock()
	if at, ok := m.cells.find(key); ok {
		return copied(m.cells.order[at])
	}
	return stores.Cell{Key: key}
}

// do calls Before, carries an operation out unless a fault or ctx prevents it, and calls After. Of an operation with
// a fault it returns the error alone.
func do[T any](ctx context.Context, m *Memory, op Op, effect func() (T, error)) (result T, err error) {
	err = check(op)
	if m.closed.Load() && err == nil {
		err = errClosed
	}
	if err != nil {
		return result, fmt.Errorf("%v %s: %w", op.Kind, op.Key, err)
	}
	fault := Fault(m.fault.Load())
	if m.Before != nil {
		fault = cmp.Or(m.Before(ctx, op), fault)
	}
	switch {
	case fault == None && ctx.Err() != nil:
		err = failed(ctx, op, nil)
	case fault == None:
		result, err = effect()
	case fault == ReplyLost:
		_, _ = effect()
	case fault == Delayed && op.Kind == OpSwap:
		m.cells.delay(op)
	}
	if m.After != nil {
		m.After(ctx, op)
	}
	if fault != None {
		err = failed(ctx, op, ErrFault)
	}
	return result, err
}

// check returns an error for a key or value that no cell can have.
func check(op Op) error {
	switch op.Kind {
	case OpSwap:
		if err := stores.CheckValue(op.Value); err != nil {
			return err
		}
	case OpList:
		return nil
	}
	return stores.CheckKey(op.Key)
}

// failed returns the error of an operation, which wraps fault and the context's.
func failed(ctx context.Context, op Op, fault error) error {
	ended := context.Cause(ctx)
	if err := ctx.Err(); err != nil && ended != err {
		ended = fmt.Errorf("%w: %w", err, ended)
	}
	switch {
	case fault == nil:
		return fmt.Errorf("%v %s: %w", op.Kind, op.Key, ended)
	case ended == nil:
		return fmt.Errorf("%v %s: %w", op.Kind, op.Key, fault)
	}
	return fmt.Errorf("%v %s: %w: %w", op.Kind, op.Key, fault, ended)
}

// swap is the effect of a Swap.
func (c *cells) swap(key string, version uint64, value []byte) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.find(key)
	cell := stores.Cell{Key: key}
	if found {
		cell = c.order[at]
	}
	if cell.Version != version {
		return 0, fmt.Errorf("swap %s: version is %d, not %d: %w", key, cell.Version, version, stores.ErrConflict)
	}
	if !found {
		cell.Key = strings.Clone(key)
		c.order = slices.Insert(c.order, at, cell)
	}
	c.versions++
	c.order[at] = stores.Cell{Key: cell.Key, Version: c.versions, Value: append([]byte(nil), value...)}
	return c.versions, nil
}

// copied returns a copy of a cell, whose Value the caller may change.
func copied(cell stores.Cell) stores.Cell {
	cell.Value = append([]byte(nil), cell.Value...)
	return cell
}
