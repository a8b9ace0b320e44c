package storetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

const (
	soon = 5 * time.Second // for a return after the context has ended
	all  = math.MaxInt     // cells of a List
)

// patience bounds an operation on a store without faults.
var patience = 30 * time.Second // a variable for our own tests

// An opener is the argument of TestStore.
type opener = func(t testing.TB, namespace string) stores.Store

// TestStore checks, in one subtest for each promise, that a [stores.Store] keeps the
// promises of its doc, without faults, and those of its locks if it has
// them.
//
// Each call of open returns an independent client of the cells of a namespace, as
// another process would have. The names are new ones in every run, so one server can
// serve many runs, and are used as they are: two that differ in one letter, or in
// its case, name two sets of cells, and a new name has no cells. open leaves closing the
// store and cleaning up to t.Cleanup, and calls t.Fatal if it fails. It takes a few
// thousand writes.
func TestStore(t *testing.T, open func(t testing.TB, namespace string) stores.Store) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) { check.run(t, open) })
	}
}

var checks = []struct {
	name string
	run  func(*testing.T, opener)
}{
	{"swap", testSwap},
	{"versions", testVersions},
	{"values", testValues},
	{"slices", testSlices},
	{"refused", testRefused},
	{"ranges", testRanges},
	{"many cells", testManyCells},
	{"races", testRaces},
	{"namespaces", testNamespaces},
	{"context ends", testContextEnds},
	{"locks", testLocks},
	{"closed", testClosed},
}

// fresh returns the name of a namespace that is not in use, with room for more
// letters.
func fresh() string { return "t" + rand.Text()[:12] }

// client is a Store whose calls must succeed.
type client struct {
	t testing.TB
	stores.Store
}

// pair returns two clients of the same new cells.
func pair(t *testing.T, open opener) (client, client) {
	both := several(t, 2, open)
	return both[0], both[1]
}

func one(t *testing.T, open opener) client { return several(t, 1, open)[0] }

func (c client) read(key string) stores.Cell {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	cell, err := c.Read(ctx, key)
	if err != nil {
		c.t.Fatalf("Read(%s): %v", key, err)
	}
	if cell.Key != key {
		c.t.Fatalf("Read(%s) returned the cell of key %s", key, cell.Key)
	}
	return cell
}

// list returns all cells of the namespace.
func (c client) list() []stores.Cell {
	c.t.Helper()
	return c.listed("", "\x7f", all)
}

func (c client) listed(from, to string, limit int) []stores.Cell {
	c.t.Helper()
	ctx, cancel := limited()
	defer cancel()
	cells, err := c.List(ctx, from, to, limit)
	if err != nil {
		c.t.Fatalf("List(%q, %q, %d): %v", from, to, limit, err)
	}
	return cells
}

// trySwap is Swap with a time limit. It returns the new cell; any other error than a
// conflict is a failure.
func (c client) trySwap(old stores.Cell, value string) (stores.Cell, bool, error) {
	ctx, cancel := limited()
	defer cancel()
	version, err := c.Swap(ctx, old.Key, old.Version, []byte(value))
	switch {
	case errors.Is(err, stores.ErrConflict):
		return stores.Cell{}, false, nil
	case err != nil:
		return stores.Cell{}, false, fmt.Errorf("Swap(%s, version %d): %w", old.Key, old.Version, err)
	case version == 0 || version == old.Version:
		return stores.Cell{}, false, fmt.Errorf("Swap(%s, version %d) returned the version %d", old.Key, old.Version, version)
	}
	return stores.Cell{Key: old.Key, Version: version, Value: []byte(value)}, true, nil
}

func (c client) swap(old stores.Cell, value string) stores.Cell {
	c.t.Helper()
	cell, ok, err := c.trySwap(old, value)
	switch {
	case err != nil:
		c.t.Fatal(err)
	case !ok:
		c.t.Fatalf("Swap(%s, version %d): conflict, but there was no other write", old.Key, old.Version)
	}
	return cell
}

// conflicts checks that a Swap conflicts and changes nothing.
func (c client) conflicts(old stores.Cell) {
	c.t.Helper()
	was := c.read(old.Key)
	_, ok, err := c.trySwap(old, "must not be seen")
	switch {
	case err != nil:
		c.t.Fatalf("%v; want an error that wraps stores.ErrConflict", err)
	case ok:
		c.t.Fatalf("Swap(%s, version %d) succeeded at version %d", old.Key, old.Version, was.Version)
	}
	c.holds(was)
}

// holds checks that the cell is as it was.
func (c client) holds(want stores.Cell) {
	c.t.Helper()
	if is := c.read(want.Key); !same(is, want) {
		c.t.Fatalf("the cell is %v, want %v", show(is), show(want))
	}
}

// lists checks that List returns these cells in the order of their keys, in the end: it
// may be out of date.
func (c client) lists(want ...stores.Cell) {
	c.t.Helper()
	c.listsRange("", "\x7f", all, want...)
}

func (c client) listsRange(from, to string, limit int, want ...stores.Cell) {
	c.t.Helper()
	var problem string
	for begin := time.Now(); time.Since(begin) < patience; {
		if problem = differs(c.listed(from, to, limit), want); problem == "" {
			return
		}
		pause()
	}
	c.t.Fatalf("List(%q, %q, %d): %s, even after %v", from, to, limit, problem, patience)
}

func differs(list, want []stores.Cell) string {
	for i := range min(len(list), len(want)) {
		if !same(list[i], want[i]) {
			return fmt.Sprintf("%v at place %d, want %v", show(list[i]), i, show(want[i]))
		}
	}
	if len(list) != len(want) {
		return fmt.Sprintf("%d cells, want %d", len(list), len(want))
	}
	return ""
}

func same(a, b stores.Cell) bool {
	return a.Key == b.Key && a.Version == b.Version && string(a.Value) == string(b.Value)
}

func show(c stores.Cell) string {
	return fmt.Sprintf("{%s, version %d, %q}", c.Key, c.Version, c.Value)
}

// node returns the key of a cell as package lease makes it.
func node(n int) string { return fmt.Sprintf("node/%07d", n) }

func absent(n int) stores.Cell { return stores.Cell{Key: node(n)} }
