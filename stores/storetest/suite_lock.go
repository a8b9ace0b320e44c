package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tickflake/tickflake/stores"
)

func testLocks(t *testing.T, open opener) {
	a, b := pair(t, open)
	if a.Traits().TryLock == nil {
		t.Logf("%T has no locks, so there is nothing to check", a.Store)
		return
	}
	// A cell that does not exist can be locked.
	unlock := a.locks(node(1))
	a.locked(node(1))
	b.locked(node(1))
	a.locks(node(2))() // others are free
	b.locks(node(2))()

	// A lock keeps no Swap out: the version alone decides on those.
	cell := a.swap(absent(1), "by the holder")
	b.holds(cell)
	cell = b.swap(cell, "by another")
	a.lists(cell)
	b.lists(cell)
	a.locked(node(1))

	unlock()
	unlock()
	theirs := b.locks(node(1))
	unlock() // frees nothing that is not its own
	a.locked(node(1))
	b.locked(node(1))
	cell = b.swap(cell, "by the next")
	theirs()
	a.locks(node(1))()
	a.locks(node(1))()
	a.swap(cell, "unlocked")
}

func (c client) locks(key string) func() {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	unlock, err := c.Traits().TryLock(ctx, key)
	if err != nil {
		c.t.Fatalf("TryLock(%s): %v", key, err)
	}
	return unlock
}

func (c client) locked(key string) {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	unlock, err := c.Traits().TryLock(ctx, key)
	if err == nil {
		unlock()
	}
	if !errors.Is(err, stores.ErrLocked) {
		c.t.Fatalf("TryLock(%s) of a locked cell: %v, want an error that wraps stores.ErrLocked", key, err)
	}
}

// Several clients lock one cell. Only one at a time has the lock.
func testLockRace(t *testing.T, open opener) {
	const racers, each = 8, 50
	clients := several(t, racers/2, open)
	if clients[0].Traits().TryLock == nil {
		t.Logf("%T has no locks, so there is nothing to check", clients[0].Store)
		return
	}
	var holders, got atomic.Int32
	parallel(t, racers, func(worker int) error {
		lock := clients[worker%len(clients)].Traits().TryLock
		for range each {
			ctx, cancel := limited()
			unlock, err := lock(ctx, node(3))
			cancel()
			if errors.Is(err, stores.ErrLocked) {
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
		t.Error("no worker ever had the lock")
	}
}
