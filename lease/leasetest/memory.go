package leasetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/tickflake/tickflake/lease"
)

// Memory is a [lease.Store] in memory, with faults on demand, for tests of programs
// that use leases. Make the first with [NewMemory], and with Client one more for
// each process of the test; they share the cells and nothing else. It is no
// [lease.Locker]; Locking returns one.
//
// It is deterministic: it starts no goroutine, never sleeps, and reads no clock, so
// that two runs with the same calls are the same. An operation without faults takes
// well under a microsecond.
//
// A Memory is safe for use by several goroutines at once, except that Before and
// After are to be set before its first use.
type Memory struct {
	// Before, if not nil, is called at the beginning of each operation and says
	// what goes wrong with it. A scheduler can let others run meanwhile: no lock is
	// held. If the context has ended when it returns, the operation fails with the
	// context's error and has done nothing, unless a fault is to say otherwise.
	Before func(context.Context, Op) Fault

	// After, if not nil, is called at the end of each operation, whatever came of
	// it: when it has taken effect, and before it returns. It is the place in which
	// to stop a process between the store and itself. No lock is held.
	After func(context.Context, Op)

	cells *cells

	mu   sync.Mutex
	next []Fault // of Fail
}

// Op is an operation on a [Memory].
type Op struct {
	Kind    OpKind
	Node    int64  // of a List, 0
	Version uint64 // of a Swap, the version that it expects, else 0
	Value   []byte // of a Swap, the new value, else nil; not to be kept or changed
}

// OpKind is what an [Op] does.
type OpKind uint8

// The operations.
const (
	OpList OpKind = iota
	OpRead
	OpSwap
	OpLock // TryLock
)

// String returns the name of the operation, such as "swap".
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("OpKind(%d)", uint8(k))
}

var opNames = [...]string{"list", "read", "swap", "lock"}

// Fault is what goes wrong with one operation on a [Memory].
type Fault uint8

// The faults. The error of each wraps [ErrFault], and the context's error too if
// that has ended.
const (
	// None lets the operation succeed.
	None Fault = iota

	// Unavailable does nothing and returns an error: the server cannot be reached.
	Unavailable

	// ReplyLost does what was asked and returns an error: the connection was cut
	// between the server and the client. The outcome of a Swap that found another
	// version is lost as well, so the error wraps no [lease.ErrConflict].
	ReplyLost

	// Delayed does nothing yet and returns an error. A Swap stays on its way until
	// Deliver or Drop; it then still is conditional on its version. Anything else is
	// as Unavailable.
	Delayed
)

// ErrFault is wrapped by the error of an operation that a [Fault] was to spoil.
var ErrFault = faultError("leasetest: the store cannot be reached, as the test has asked for")

type faultError string

func (e faultError) Error() string { return string(e) }

// cells are what all clients of a Memory share.
type cells struct {
	mu       sync.Mutex
	byNode   map[int64]*lease.Cell // the Value of each is never written to
	order    []*lease.Cell         // as they were created
	versions uint64                // given to a value so far, to whichever cell
	late     []Late
	locks    map[int64]*held
}

// NewMemory returns a Memory without cells or faults.
func NewMemory() *Memory {
	return &Memory{cells: &cells{
		byNode: make(map[int64]*lease.Cell),
		locks:  make(map[int64]*held),
	}}
}

// Client returns another client of the same cells, as another process would have.
// It has no hooks and no faults.
func (m *Memory) Client() *Memory { return &Memory{cells: m.cells} }

// List returns all cells in the order of their creation.
func (m *Memory) List(ctx context.Context) ([]lease.Cell, error) {
	op := Op{Kind: OpList}
	fault, err := m.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	c := m.cells
	c.mu.Lock()
	list := make([]lease.Cell, len(c.order))
	for i, cell := range c.order {
		list[i] = copied(*cell)
	}
	c.mu.Unlock()
	if err := m.end(ctx, op, fault); err != nil {
		return nil, err
	}
	return list, nil
}

// Read returns the cell of a node number, or one with Version 0.
func (m *Memory) Read(ctx context.Context, node int64) (lease.Cell, error) {
	op := Op{Kind: OpRead, Node: node}
	fault, err := m.begin(ctx, op)
	if err != nil {
		return lease.Cell{}, err
	}
	cell := m.Peek(node)
	if err := m.end(ctx, op, fault); err != nil {
		return lease.Cell{}, err
	}
	return cell, nil
}

// Swap replaces the value of a cell, if its version is old.Version.
func (m *Memory) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	op := Op{Kind: OpSwap, Node: old.Node, Version: old.Version, Value: value}
	fault, err := m.begin(ctx, op)
	if err != nil {
		return lease.Cell{}, err
	}
	cell, conflict := m.cells.swap(old.Node, old.Version, value)
	if err := m.end(ctx, op, fault); err != nil {
		return lease.Cell{}, err // a lost reply, whatever it would have said
	}
	return cell, conflict
}

// Peek returns what Read does, but is no operation: it has no faults and calls no
// hook. It is for a test that looks over everyone's shoulder.
func (m *Memory) Peek(node int64) lease.Cell {
	m.cells.mu.Lock()
	defer m.cells.mu.Unlock()
	if cell := m.cells.byNode[node]; cell != nil {
		return copied(*cell)
	}
	return lease.Cell{Node: node}
}

// begin calls the hook, and returns an error if the operation is not to take place,
// else the fault to pass to end.
func (m *Memory) begin(ctx context.Context, op Op) (Fault, error) {
	fault := m.taken()
	if m.Before != nil {
		if f := m.Before(ctx, op); f != None {
			fault = f
		}
	}
	var spoiled error
	switch {
	case fault == None && ctx.Err() == nil, fault == ReplyLost:
		return fault, nil
	case fault == Delayed && op.Kind == OpSwap:
		m.cells.delay(op)
		fallthrough
	case fault != None:
		spoiled = ErrFault
	}
	err := failed(ctx, op, spoiled)
	if m.After != nil {
		m.After(ctx, op)
	}
	return fault, err
}

// end calls the other hook, and returns an error if the reply is lost.
func (m *Memory) end(ctx context.Context, op Op, fault Fault) error {
	if m.After != nil {
		m.After(ctx, op)
	}
	if fault != None {
		return failed(ctx, op, ErrFault)
	}
	return nil
}

// failed returns the error of an operation, which wraps fault and the context's.
func failed(ctx context.Context, op Op, fault error) error {
	ended := context.Cause(ctx)
	if err := ctx.Err(); err != nil && ended != err {
		ended = fmt.Errorf("%w: %w", err, ended)
	}
	switch {
	case fault == nil:
		return fmt.Errorf("%v node %d: %w", op.Kind, op.Node, ended)
	case ended == nil:
		return fmt.Errorf("%v node %d: %w", op.Kind, op.Node, fault)
	}
	return fmt.Errorf("%v node %d: %w: %w", op.Kind, op.Node, fault, ended)
}

// swap is a Swap when it takes effect.
func (c *cells) swap(node int64, version uint64, value []byte) (lease.Cell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cell := c.byNode[node]
	var is uint64
	if cell != nil {
		is = cell.Version
	}
	if is != version {
		return lease.Cell{}, fmt.Errorf("swap node %d: version is %d, not %d: %w", node, is, version, lease.ErrConflict)
	}
	if cell == nil {
		cell = &lease.Cell{Node: node}
		c.byNode[node] = cell
		c.order = append(c.order, cell)
	}
	c.versions++
	cell.Version = c.versions
	cell.Value = append([]byte(nil), value...)
	return copied(*cell), nil
}

// copied returns a cell whose Value is the caller's to change.
func copied(cell lease.Cell) lease.Cell {
	cell.Value = append([]byte(nil), cell.Value...)
	return cell
}
