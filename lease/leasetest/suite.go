package leasetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tickflake/tickflake/lease"
)

const (
	soon     = 5 * time.Second // for a return after the context has ended
	lastNode = 1<<22 - 1
)

// patience is for an operation on a store that is well.
var patience = 30 * time.Second // a variable for our own tests

// An opener is what TestStore is given.
type opener = func(t testing.TB, namespace string) lease.Store

// TestStore checks, in one subtest for each promise, that a [lease.Store] keeps what
// its doc promises while nothing goes wrong, and that of [lease.Locker] if it is
// one.
//
// Each call of open returns an independent client of the cells of a namespace, as
// another process would have. The names are new ones in every run, so one server can
// serve many runs, and are used as they are: two that differ in one letter, or in
// its case, name two sets of cells, and a new name names none. open leaves cleaning
// up to t.Cleanup, and calls t.Fatal if it fails.
//
// The values in it are UTF-8 text with everything but U+0000, which the text of some
// databases does not take. It takes a few thousand writes. In the end generators issue
// IDs on the store: they are restarted, in virtual time, with the wall stepped back by
// up to a year; and several processes run beside each other, in real time.
func TestStore(t *testing.T, open func(t testing.TB, namespace string) lease.Store) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) { check.run(t, open) })
	}
}

var checks = []struct {
	name string
	run  func(*testing.T, opener)
}{
	{"empty", testEmpty},
	{"create", testCreate},
	{"swap", testSwap},
	{"versions", testVersions},
	{"old value is not looked at", testOldValue},
	{"read after write", testReadAfterWrite},
	{"values", testValues},
	{"slices", testSlices},
	{"node numbers", testNodes},
	{"many cells", testManyCells},
	{"race to create", testRaceToCreate},
	{"race to swap", testRaceToSwap},
	{"namespaces", testNamespaces},
	{"context ended before", testEndedBefore},
	{"context ends during", testEndsDuring},
	{"locks", testLocks},
	{"locks in a race", testLockRace},
	{"restart", testRestart},
	{"fleet", testFleet},
}

// fresh returns the name of a namespace that nobody has used, with room for more
// letters.
func fresh() string { return "t" + rand.Text()[:12] }

// client is a Store whose calls must succeed.
type client struct {
	t testing.TB
	lease.Store
}

// pair returns two clients of the same new cells.
func pair(t *testing.T, open opener) (client, client) {
	t.Helper()
	name := fresh()
	return client{t, open(t, name)}, client{t, open(t, name)}
}

func one(t *testing.T, open opener) client {
	t.Helper()
	return client{t, open(t, fresh())}
}

func (c client) read(node int64) lease.Cell {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cell, err := c.Read(ctx, node)
	if err != nil {
		c.t.Fatalf("Read(%d): %v", node, err)
	}
	if cell.Node != node {
		c.t.Fatalf("Read(%d) returned the cell of node %d", node, cell.Node)
	}
	return cell
}

func (c client) list() []lease.Cell {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cells, err := c.List(ctx)
	if err != nil {
		c.t.Fatalf("List: %v", err)
	}
	return cells
}

// trySwap is Swap with a time limit. What it returns without error must be the new
// cell; any other error than a conflict is a failure.
func (c client) trySwap(old lease.Cell, value string) (lease.Cell, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cell, err := c.Swap(ctx, old, []byte(value))
	switch {
	case errors.Is(err, lease.ErrConflict):
		return cell, false, nil
	case err != nil:
		return cell, false, fmt.Errorf("Swap(node %d, version %d): %w", old.Node, old.Version, err)
	case cell.Node != old.Node || cell.Version == 0 || cell.Version == old.Version || string(cell.Value) != value:
		return cell, false, fmt.Errorf("Swap(node %d, version %d, %q) returned %v", old.Node, old.Version, value, show(cell))
	}
	return cell, true, nil
}

func (c client) swap(old lease.Cell, value string) lease.Cell {
	c.t.Helper()
	cell, ok, err := c.trySwap(old, value)
	switch {
	case err != nil:
		c.t.Fatal(err)
	case !ok:
		c.t.Fatalf("Swap(node %d, version %d): conflict, but nobody else has written", old.Node, old.Version)
	}
	return cell
}

// conflicts checks that a Swap conflicts and changes nothing.
func (c client) conflicts(old lease.Cell) {
	c.t.Helper()
	was := c.read(old.Node)
	_, ok, err := c.trySwap(old, "must not be seen")
	switch {
	case err != nil:
		c.t.Fatalf("%v; want an error that wraps lease.ErrConflict", err)
	case ok:
		c.t.Fatalf("Swap(node %d, version %d) succeeded at version %d", old.Node, old.Version, was.Version)
	}
	c.holds(was)
}

// holds checks that the cell is as it was.
func (c client) holds(want lease.Cell) {
	c.t.Helper()
	if is := c.read(want.Node); !same(is, want) {
		c.t.Fatalf("the cell is %v, want %v", show(is), show(want))
	}
}

// lists checks that List returns these cells, in the end: it may be out of date.
func (c client) lists(want map[int64]lease.Cell) {
	c.t.Helper()
	var problem string
	for begin := time.Now(); time.Since(begin) < patience; {
		if problem = differs(c.list(), want); problem == "" {
			return
		}
		pause()
	}
	c.t.Fatalf("List: %s, even after %v", problem, patience)
}

func differs(list []lease.Cell, want map[int64]lease.Cell) string {
	seen := make(map[int64]bool, len(list))
	for _, cell := range list {
		w, ok := want[cell.Node]
		switch {
		case !ok:
			return fmt.Sprintf("%v is none of the cells", show(cell))
		case seen[cell.Node]:
			return fmt.Sprintf("node %d is there twice", cell.Node)
		case !same(cell, w):
			return fmt.Sprintf("%v, want %v", show(cell), show(w))
		}
		seen[cell.Node] = true
	}
	if len(list) != len(want) {
		return fmt.Sprintf("%d cells, want %d", len(list), len(want))
	}
	return ""
}

func same(a, b lease.Cell) bool {
	return a.Node == b.Node && a.Version == b.Version && string(a.Value) == string(b.Value)
}

func show(c lease.Cell) string {
	return fmt.Sprintf("{node %d, version %d, %q}", c.Node, c.Version, c.Value)
}

func absent(node int64) lease.Cell { return lease.Cell{Node: node} }
