package storetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tickflake/tickflake/stores"
)

// Fail gives a fault to every operation of this client from now on, until the next Fail. If Before returns
// a fault as well, that one counts.
func (m *Memory) Fail(fault Fault) { m.fault.Store(uint32(fault)) }

// Late returns the writes in flight of all clients, the oldest first: each is a Swap that was [Delayed], and
// takes effect only if the cell still has its Version then.
func (m *Memory) Late() []Op {
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
	_, err := m.cells.swap(late.Key, late.Version, late.Value)
	return err == nil
}

// Drop loses the i-th write of Late. It does nothing if there is no
// i-th.
func (m *Memory) Drop(i int) { m.take(i) }

func (m *Memory) take(i int) (Op, bool) {
	c := m.cells
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.late) {
		return Op{}, false
	}
	late := c.late[i]
	c.late = slices.Delete(c.late, i, i+1)
	return late, true
}

func (c *cells) delay(op Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op.Value = slices.Clone(op.Value)
	c.late = append(c.late, op)
}

// Snapshot copies all cells, and returns a function that puts them back, as a backup or
// a replica that lags behind does to a server: cells made since then are gone. Later
// writes still get new versions. restore may be called more than once.
func (m *Memory) Snapshot() (restore func()) {
	c := m.cells
	c.mu.Lock()
	defer c.mu.Unlock()
	saved := slices.Clone(c.order)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.order = slices.Clone(saved)
	}
}

// LockingMemory is a [Memory] with locks.
type LockingMemory struct{ *Memory }

var _, _ stores.Store = (*Memory)(nil), LockingMemory{}

// Locking returns the same client with locks. Those of all clients of the same cells exclude each other.
func (m *Memory) Locking() LockingMemory { return LockingMemory{m} }

// Traits has the locks.
func (m LockingMemory) Traits() stores.Traits { return stores.Traits{TryLock: m.tryLock} }

// tryLock locks the cell of a key, or returns an error that wraps
// [stores.ErrLocked]. For it, Delayed is the same as Unavailable, and with
// ReplyLost nothing is locked, either: the lock is in the process itself.
func (m LockingMemory) tryLock(ctx context.Context, key string) (unlock func(), err error) {
	var mine *held
	unlock = func() { m.cells.unlock(key, mine) }
	_, err = do(ctx, m.Memory, Op{Kind: OpLock, Key: key}, func() (_ any, err error) { mine, err = m.lock(key); return nil, err })
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Crash frees every cell that this client has locked, as the end of its process
// does. Its unlock functions do nothing from then on. The client
// can be used again, as the next process.
func (m *Memory) Crash() {
	m.cells.mu.Lock()
	defer m.cells.mu.Unlock()
	for key, lock := range m.cells.locks {
		if lock.by == m {
			delete(m.cells.locks, key)
		}
	}
}

// held is one locking of a cell.
type held struct{ by *Memory }

func (m *Memory) lock(key string) (*held, error) {
	c := m.cells
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[key] != nil {
		return nil, fmt.Errorf("lock %s: %w", key, stores.ErrLocked)
	}
	lock := &held{by: m}
	c.locks[key] = lock
	return lock, nil
}

// unlock frees a cell, unless it has been freed and locked again since.
func (c *cells) unlock(key string, lock *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lock != nil && c.locks[key] == lock {
		delete(c.locks, key)
	}
}
