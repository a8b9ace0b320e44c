package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tickflake/tickflake/stores"
)

func testSwap(t *testing.T, open opener) {
	a, b := pair(t, open)
	made := a.swap(absent(7), "first")
	a.holds(made)
	b.holds(made)
	a.conflicts(absent(7))
	b.conflicts(absent(7))
	b.lists(made)

	// One that is not there has no other version than 0.
	b.conflicts(stores.Cell{Key: node(8), Version: made.Version})
	b.conflicts(stores.Cell{Key: node(8), Version: 1})
	b.lists(made)

	first := a.swap(absent(3), "first")
	other := a.swap(absent(4), "other")
	second := b.swap(first, "second")
	a.conflicts(first)
	b.conflicts(first)
	third := a.swap(second, "second") // the same value again is a new version
	b.conflicts(second)
	for _, wrong := range []uint64{0, first.Version, second.Version, third.Version + 1, third.Version + 1<<32, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		b.conflicts(stores.Cell{Key: node(3), Version: wrong})
	}
	// Versions are each cell's own.
	if other.Version != third.Version {
		a.conflicts(stores.Cell{Key: node(3), Version: other.Version})
	}
	a.holds(third)
	b.holds(other)
}

// Each write has a version of its own, and is read at once.
func testVersions(t *testing.T, open opener) {
	clients := several(t, 2, open)
	seen := map[uint64]int{0: -1}
	cell := absent(1)
	for i := range 300 {
		cell = clients[i%2].swap(cell, "value "+fmt.Sprint(i%3))
		if before, ok := seen[cell.Version]; ok {
			t.Fatalf("write %d has version %d, as write %d had", i, cell.Version, before)
		}
		seen[cell.Version] = i
		clients[1-i%2].holds(cell)
	}
}

func testValues(t *testing.T, open opener) {
	a, b := pair(t, open)
	cell := absent(99)
	for _, value := range values() {
		cell = a.swap(cell, value)
		b.holds(cell)
	}
	b.lists(cell)
}

// text returns n bytes of UTF-8 text with characters of all lengths.
func text(n int) string {
	var s strings.Builder
	for i := 0; ; i++ {
		r := []rune("aé€😀")[(i+n)%4]
		if s.Len()+utf8.RuneLen(r) > n {
			break
		}
		s.WriteRune(r)
	}
	return s.String() + strings.Repeat("z", n-s.Len())
}

// values returns texts that are easily taken for something else, or for another length, on the way.
func values() []string {
	odd := []string{
		"", " ", "  both ends  ", "\n", "a\nb\r\nc\n", "\t", "null", "NULL", "0", "-1", "1e9", "{}", `{"limit":"1"}`,
		`'`, `''`, `"`, "`", `\`, `\\`, `\n`, `\x00`, `\u0000`, "%", "%s%d", "$1", "?", ":a", "*", ";--", "/*",
		"\uFEFFwith a mark", "\uFFFD", "e\u0301", "\u00e9", "\u202eright to left", "שלום", "日本語", "\U0010FFFF", "\u2028",
		"ends in a space ", "ends in a space", "Case", "case", "ß", "ss",
	}
	for c := rune(1); c < 32; c++ {
		odd = append(odd, fmt.Sprintf("control %c here", c))
	}
	for power := 4; power <= stores.MaxValue; power *= 2 {
		for n := power - 3; n <= min(power+3, stores.MaxValue); n++ {
			odd = append(odd, text(n)) // half of these would end in the middle of a character without the filling
		}
	}
	return append(odd, "\x7f", "\u0085", strings.Repeat("€", stores.MaxValue/3), strings.Repeat("\\", stores.MaxValue))
}

func testSlices(t *testing.T, open opener) {
	c := one(t, open)
	spoil := func(b []byte) {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 'X'
		}
	}
	ctx, cancel := limited()
	defer cancel()
	value := []byte("kept")
	version, err := c.Swap(ctx, node(6), 0, value)
	if err != nil {
		t.Fatal(err)
	}
	spoil(value)
	want := stores.Cell{Key: node(6), Version: version, Value: []byte("kept")}
	c.holds(want)
	spoil(c.read(node(6)).Value)
	c.holds(want)
	for range 2 {
		for _, cell := range c.list() {
			if !same(cell, want) {
				t.Errorf("List: %v, want %v", show(cell), show(want))
			}
			spoil(cell.Value)
		}
	}
	c.holds(want)
}

// sortedKeys are keys that are easily mixed up or sorted in another order than that of
// their bytes.
var sortedKeys = []string{
	"-", "-a", ".a", "0", "00", "1", "10", "2", "_", "a", "a-b", "a-b/c", "a.b", "a.b/c", "a/b", "a/b-c", "a/b.c", "a/b/c", "a/b/c/d/e/f", "a0", "a_b", "aa", "aa/b", "ab",
	"cell", "confirm", "layout", "node-0000001", "node.0000001", "node/0000000", "node/0000001", "node/0000010", "node/0000011", "node/4194303", "node/x", "node0", "seq/a", "seq/a..b", "seq/invoices", "seq/invoices.2026", "swap", "zookeeper",
	"zz/" + strings.Repeat("z", stores.MaxKey-3),
}

// A key or value that no cell can have is refused, and nothing is sent.
func testRefused(t *testing.T, open opener) {
	c := one(t, open)
	ctx, cancel := limited()
	defer cancel()
	for _, key := range []string{"", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "A", "ä", "a b", "a*", "a>", "a%", "a\x00", strings.Repeat("k", stores.MaxKey+1)} {
		if _, err := c.Read(ctx, key); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Read(%q): error %v", key, err)
		}
		if _, err := c.Swap(ctx, key, 0, []byte("value")); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap(%q): error %v", key, err)
		}
		if lock := c.Traits().TryLock; lock != nil {
			if _, err := lock(ctx, key); err == nil || errors.Is(err, stores.ErrLocked) {
				t.Errorf("TryLock(%q): error %v", key, err)
			}
		}
	}
	for _, value := range []string{strings.Repeat("v", stores.MaxValue+1), "\xff", "a\x00b"} {
		if _, err := c.Swap(ctx, node(1), 0, []byte(value)); err == nil || errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap of the value %.20q: error %v", value, err)
		}
	}
	c.lists()
}

// Keys of all kinds in their order, ranges and limits, and paging with them.
func testRanges(t *testing.T, open opener) {
	a, b := pair(t, open)
	cells := make([]stores.Cell, len(sortedKeys))
	for i, key := range slices.Backward(sortedKeys) {
		cells[i] = a.swap(stores.Cell{Key: key}, "of "+key)
	}
	for _, cell := range cells {
		b.holds(cell)
	}
	within := func(from, to string) (found []stores.Cell) {
		for _, cell := range cells {
			if from <= cell.Key && cell.Key < to {
				found = append(found, cell)
			}
		}
		return found
	}
	for _, r := range [][2]string{
		{"node/", "node0"}, {"seq/", "seq0"}, {"layout", "layout\x00"}, {"a", "a0"}, {"a/", "a0"}, {"a-", "a/"}, {"a/b", "a/b/"}, {"a/b", "a/b0"},
		{"", "a"}, {"a\x00", "b"}, {"a!", "b"}, {"", "\x7f"}, {"m", "zz"}, {"node/0000001", "node/0000011"}, {"node/0000001\x00", "node/4194303\x00"},
		{"zz/", "zz0"}, {"zzz", "\x7f"}, {"", ""}, {"b", "a"}, {"a", "a"}, {"", "\xff\xff"}, {"A", "ä"}, {"%", "}"}, {"\x00", "\x01"},
	} {
		want := within(r[0], r[1])
		b.listsRange(r[0], r[1], all, want...)
		for _, limit := range []int{-1, 0, 1, 2, len(want) - 1, len(want), len(want) + 1, math.MaxInt32} {
			b.listsRange(r[0], r[1], limit, want[:max(0, min(limit, len(want)))]...)
		}
	}
	for _, size := range []int{1, 3, 7} {
		from, got := "", []stores.Cell(nil)
		for {
			page := b.listed(from, "\x7f", size)
			got = append(got, page...)
			if len(page) < size {
				break
			}
			from = page[len(page)-1].Key + "\x00"
		}
		if problem := differs(got, cells); problem != "" {
			t.Errorf("pages of %d: %s", size, problem)
		}
	}
}

func testManyCells(t *testing.T, open opener) {
	const cells, workers = 1024, 16
	a, b := pair(t, open)
	want := make([]stores.Cell, cells)
	parallel(t, workers, func(worker int) error {
		for n := worker; n < cells; n += workers {
			cell, ok, err := a.trySwap(absent(n), text(200)+fmt.Sprint(n))
			if err != nil || !ok {
				return fmt.Errorf("node %d: created: %v, %w", n, ok, err)
			}
			want[n] = cell
		}
		return nil
	})
	b.lists(want...)
	a.lists(want...)
	want[500] = a.swap(want[500], "changed")
	b.lists(want...)
	b.listsRange(node(400), node(600), 150, want[400:550]...)

	// A list also has the cells that are written meanwhile, each once.
	var listed atomic.Bool
	parallel(t, workers+1, func(worker int) error {
		if worker == workers {
			defer listed.Store(true)
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				ctx, cancel := limited()
				list, err := b.List(ctx, "", "\x7f", all)
				cancel()
				for n := range max(cells, len(list)) {
					if err != nil || n >= min(cells, len(list)) || list[n].Key != node(n) {
						return fmt.Errorf("a list of %d cells, of which some are written meanwhile: %d, and not that of node %d in its place: %w", cells, len(list), n, err)
					}
				}
			}
			return nil
		}
		for n := worker; !listed.Load(); n = (n + workers) % cells {
			is, ok, err := a.trySwap(want[n], "again")
			if err != nil || !ok {
				return fmt.Errorf("node %d: changed: %v, %w", n, ok, err)
			}
			want[n] = is
		}
		return nil
	})
}

// A closed client does not affect others, and can be closed again. Its operations
// return, with any result.
func testClosed(t *testing.T, open opener) {
	a, b := pair(t, open)
	cell := a.swap(absent(1), "before")
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	ctx, cancel := limited()
	defer cancel()
	for _, op := range operations(a, cell) {
		begin := time.Now()
		_ = op.run(ctx)
		if took := time.Since(begin); took > soon {
			t.Errorf("%s after Close returned after %v", op.name, took)
		}
	}
	lands(b, cell)
}

func testNamespaces(t *testing.T, open opener) {
	root := fresh()
	names := []string{"", "a", "ab", "a-b", "a_b", "axb", "A", "a-", "a_", "-a", "_", "-", "1", "01"}
	for i, name := range names {
		names[i] = root + name
	}
	longest := root
	for stores.CheckNamespace(longest+"m") == nil {
		longest += "m"
	}
	names = append(names, longest, longest[:len(longest)-1])
	cells := make([]stores.Cell, len(names))
	for i, name := range names {
		c := client{t, open(t, name)}
		if is := c.read(node(1)); is.Version != 0 {
			t.Fatalf("namespace %q has a cell of another: %v", name, show(is))
		}
		if list := c.list(); len(list) != 0 {
			t.Fatalf("namespace %q lists a cell of another: %v", name, show(list[0]))
		}
		cells[i] = c.swap(absent(1), name)
	}
	for i, name := range names {
		c := client{t, open(t, name)}
		c.holds(cells[i])
		c.lists(cells[i])
		cells[i] = c.swap(cells[i], name+" again")
	}
	for i, name := range names {
		client{t, open(t, name)}.holds(cells[i])
	}
}
