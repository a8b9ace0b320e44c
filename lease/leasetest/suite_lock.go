package leasetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tickflake/tickflake/lease"
)

func testLocks(t *testing.T, open opener) {
	a, b := pair(t, open)
	if _, ok := a.Store.(lease.Locker); !ok {
		t.Logf("%T is no lease.Locker, so there is nothing to check", a.Store)
		return
	}
	// A cell needs not exist to be locked.
	unlock := a.locks(1)
	a.locked(1)
	b.locked(1)
	a.locks(2)() // others are free
	b.locks(2)()

	// A lock locks out no Swap: of those, the version alone decides.
	cell := a.swap(absent(1), "by the holder")
	b.holds(cell)
	cell = b.swap(cell, "by another")
	a.lists(map[int64]lease.Cell{1: cell})
	b.lists(map[int64]lease.Cell{1: cell})
	a.locked(1)

	unlock()
	unlock()
	theirs := b.locks(1)
	unlock() // frees nothing that is not its own
	a.locked(1)
	b.locked(1)
	cell = b.swap(cell, "by the next")
	theirs()
	a.locks(1)()
	a.locks(1)()
	a.swap(cell, "unlocked")
}

func (c client) locks(node int64) func() {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	unlock, err := c.Store.(lease.Locker).TryLock(ctx, node)
	if err != nil {
		c.t.Fatalf("TryLock(%d): %v", node, err)
	}
	return unlock
}

func (c client) locked(node int64) {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	unlock, err := c.Store.(lease.Locker).TryLock(ctx, node)
	if err == nil {
		unlock()
	}
	if !errors.Is(err, lease.ErrLocked) {
		c.t.Fatalf("TryLock(%d) of a locked cell: %v, want an error that wraps lease.ErrLocked", node, err)
	}
}

// Of many who lock one cell, one at a time has it.
func testLockRace(t *testing.T, open opener) {
	const racers, each = 8, 50
	clients := several(t, racers/2, open)
	if _, ok := clients[0].Store.(lease.Locker); !ok {
		t.Logf("%T is no lease.Locker, so there is nothing to check", clients[0].Store)
		return
	}
	var holders, got atomic.Int32
	parallel(t, racers, func(worker int) error {
		locker := clients[worker%len(clients)].Store.(lease.Locker)
		for range each {
			ctx, cancel := limited()
			unlock, err := locker.TryLock(ctx, 3)
			cancel()
			if errors.Is(err, lease.ErrLocked) {
				continue
			}
			if err != nil {
				return err
			}
			got.Add(1)
			if n := holders.Add(1); n != 1 {
				return fmt.Errorf("%d hold the same lock", n)
			}
			holders.Add(-1)
			unlock()
		}
		return nil
	})
	if got.Load() == 0 {
		t.Error("nobody ever had the lock")
	}
}
