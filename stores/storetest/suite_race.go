package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// limited returns a context for a few operations on a store without faults.
func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// parallel runs n workers and reports their errors.
func parallel(t *testing.T, n int, work func(worker int) error) {
	t.Helper()
	errs := make([]error, n)
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() { errs[i] = work(i) })
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// open several clients of the same new cells.
func several(t *testing.T, n int, open opener) []client {
	t.Helper()
	name := fresh()
	clients := make([]client, n)
	for i := range clients {
		clients[i] = client{t, open(t, name)}
	}
	return clients
}

// Clients, some of them used by several goroutines, count up one cell after the other together, from nothing on.
func testRaces(t *testing.T, open opener) {
	const racers, cells, each = 12, 30, 10
	clients := several(t, racers/2, open)
	var mu sync.Mutex
	next := make(map[string]stores.Cell) // by what a winner replaced
	last := time.Now()                   // when any of them has won
	parallel(t, racers, func(worker int) error {
		c := clients[worker%len(clients)]
		for n := 0; n < cells; {
			mu.Lock()
			stuck := time.Since(last) > 4*patience
			mu.Unlock()
			if stuck {
				return fmt.Errorf("no write in %v, at cell %d of %d: all writers are in conflict", 4*patience, n, cells)
			}
			ctx, cancel := limited()
			old, err := c.Read(ctx, node(n))
			cancel()
			if err != nil {
				return err
			}
			count, err := strconv.Atoi("0" + string(old.Value))
			if err != nil {
				return err
			}
			if count >= each {
				n++
				continue
			}
			cell, ok, err := c.trySwap(old, strconv.Itoa(count+1))
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			mu.Lock()
			last = time.Now()
			other, twice := next[show(old)]
			next[show(old)] = cell
			mu.Unlock()
			if twice {
				return fmt.Errorf("two writes replaced %v: %v and %v", show(old), show(other), show(cell))
			}
		}
		return nil
	})
	if len(next) != cells*each {
		t.Fatalf("%d writes were acknowledged, and each of %d cells counts %d", len(next), cells, each)
	}
}

type operation struct {
	name string
	run  func(context.Context) error
}

// operations are the methods of a Store that take a context.
func operations(c stores.Store, cell stores.Cell) []operation {
	ops := []operation{
		{"List", func(ctx context.Context) error { _, err := c.List(ctx, "", "\x7f", all); return err }},
		{"Read", func(ctx context.Context) error { _, err := c.Read(ctx, cell.Key); return err }},
		{"Swap", func(ctx context.Context) error {
			_, err := c.Swap(ctx, cell.Key, cell.Version, []byte("unknown"))
			return err
		}},
	}
	if lock := c.Traits().TryLock; lock != nil {
		ops = append(ops, operation{"TryLock", func(ctx context.Context) error {
			for {
				unlock, err := lock(ctx, cell.Key)
				if err == nil {
					unlock()
				}
				if !errors.Is(err, stores.ErrLocked) { // else by a call before, which ended first and unlocks late
					return err
				}
			}
		}})
	}
	return ops
}

// lands returns the cell after one write to old with an unknown outcome, and checks
// that the cell is the one or the other, and can be written.
func lands(c client, old stores.Cell) stores.Cell {
	c.t.Helper()
	for {
		is := c.read(old.Key)
		if !same(is, old) && (is.Version == old.Version || string(is.Value) != "unknown") {
			c.t.Fatalf("the cell is %v, neither %v nor what was written", show(is), show(old))
		}
		next, ok, err := c.trySwap(is, "known")
		if err != nil {
			c.t.Fatal(err)
		}
		if ok {
			return next
		}
		if is.Version != old.Version {
			c.t.Fatalf("Swap at version %d: conflict, but there was no other write", is.Version)
		}
		// The write has come late, between the Read and the Swap. It does so once.
	}
}

// The context has ended before each operation, and ends during it. The moment depends on the store's
// speed, so the times range from far too short to long enough.
func testContextEnds(t *testing.T, open opener) {
	c := one(t, open)
	cell := c.swap(absent(1), "before")
	succeeded := 0
	for wait := -time.Hour; wait < soon && succeeded < 10; wait = max(time.Microsecond, wait*5/4+1) {
		for _, ends := range endings {
			ctx, cancel := ends.after(wait)
			if wait < 0 {
				<-ctx.Done()
			}
			all := true
			for _, op := range operations(c, cell) {
				begin := time.Now()
				err := op.run(ctx)
				all = all && err == nil
				if (err != nil || wait < 0) && !errors.Is(err, ends.as) {
					t.Errorf("%s, with a context that ends after %v: error %v, want one that wraps %q", op.name, wait, err, ends.as)
				}
				if took := time.Since(begin); took > max(wait, 0)+soon {
					t.Errorf("%s, with a context that ends after %v: returned after %v", op.name, wait, took)
				}
			}
			cancel()
			if t.Failed() {
				return
			}
			if all {
				succeeded++
			}
			cell = lands(c, cell) // the write may have landed all the same
		}
	}
	if succeeded == 0 {
		t.Errorf("an operation takes longer than %v", soon)
	}
}

// ending is a way in which a context ends.
type ending struct {
	as    error
	after func(time.Duration) (context.Context, context.CancelFunc)
}

var endings = []ending{
	{context.DeadlineExceeded, func(d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), d)
	}},
	{context.Canceled, func(d time.Duration) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}},
}

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
	t.Run("race", func(t *testing.T) { testLockRace(t, open) })
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
