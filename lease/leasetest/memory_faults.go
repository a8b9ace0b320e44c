package leasetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tickflake/tickflake/lease"
)

// Fail spoils the next n operations of this client, after those that an earlier
// Fail has spoiled. Where Before asks for a fault, that one counts, and this is
// used up.
func (m *Memory) Fail(fault Fault, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.next = append(m.next, fault)
	}
}

// Heal takes back what is left of every Fail. Writes that are on their way stay
// there.
func (m *Memory) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = nil
}

// taken returns the next fault of Fail.
func (m *Memory) taken() Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.next) == 0 {
		return None
	}
	fault := m.next[0]
	m.next = m.next[1:]
	return fault
}

// Late is a write on its way: a Swap that was [Delayed].
type Late struct {
	Node    int64
	Version uint64 // that the cell must still have for the write to take effect
	Value   []byte // not to be changed
}

// Late returns the writes that are on their way, the oldest first, whichever client
// sent them.
func (m *Memory) Late() []Late {
	m.cells.mu.Lock()
	defer m.cells.mu.Unlock()
	return slices.Clone(m.cells.late)
}

// Deliver lets the i-th write of Late arrive, and reports whether it took effect:
// it does not if the cell has another version by now, or if there is no i-th.
func (m *Memory) Deliver(i int) bool {
	late, ok := m.take(i)
	if !ok {
		return false
	}
	_, err := m.cells.swap(late.Node, late.Version, late.Value)
	return err == nil
}

// Drop lets the i-th write of Late never arrive. It does nothing if there is no
// i-th.
func (m *Memory) Drop(i int) { m.take(i) }

func (m *Memory) take(i int) (Late, bool) {
	c := m.cells
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.late) {
		return Late{}, false
	}
	late := c.late[i]
	c.late = slices.Delete(c.late, i, i+1)
	return late, true
}

func (c *cells) delay(op Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, Late{op.Node, op.Version, slices.Clone(op.Value)})
}

// LockingMemory is a [Memory] that is a [lease.Locker].
type LockingMemory struct{ *Memory }

var (
	_ lease.Store  = (*Memory)(nil)
	_ lease.Locker = LockingMemory{}
)

// Locking returns the same client as a [lease.Locker]. The locks of all clients of
// the same cells exclude each other.
func (m *Memory) Locking() LockingMemory { return LockingMemory{m} }

// TryLock locks the cell of a node number, or returns an error that wraps
// [lease.ErrLocked]. A Delayed TryLock is as one that is Unavailable; one whose
// ReplyLost has locked nothing, either: the lock is the process's own.
func (m LockingMemory) TryLock(ctx context.Context, node int64) (unlock func(), err error) {
	op := Op{Kind: OpLock, Node: node}
	fault, err := m.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	var mine *held
	if fault == None {
		mine, err = m.lock(node)
	}
	if spoiled := m.end(ctx, op, fault); spoiled != nil {
		return nil, spoiled
	}
	if err != nil {
		return nil, err
	}
	return func() { m.cells.unlock(node, mine) }, nil
}

// Crash frees every cell that this client has locked, as the end of its process
// does. The unlock functions that it was given do nothing from then on. The client
// can be used again, as the process that is started next.
func (m *Memory) Crash() {
	m.cells.mu.Lock()
	defer m.cells.mu.Unlock()
	for node, lock := range m.cells.locks {
		if lock.by == m {
			delete(m.cells.locks, node)
		}
	}
}

// held is one locking of a cell.
type held struct{ by *Memory }

func (m *Memory) lock(node int64) (*held, error) {
	c := m.cells
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[node] != nil {
		return nil, fmt.Errorf("lock node %d: %w", node, lease.ErrLocked)
	}
	lock := &held{by: m}
	c.locks[node] = lock
	return lock, nil
}

// unlock frees a cell, unless it has been freed and locked again since.
func (c *cells) unlock(node int64, lock *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[node] == lock {
		delete(c.locks, node)
	}
}
