package leasetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tickflake/tickflake/lease"
)

func testEmpty(t *testing.T, open opener) {
	c := one(t, open)
	if cells := c.list(); len(cells) != 0 {
		t.Errorf("List of a new namespace: %d cells, the first is %v", len(cells), show(cells[0]))
	}
	for _, node := range []int64{0, 1, 1023, lastNode} {
		if cell := c.read(node); cell.Version != 0 || len(cell.Value) != 0 {
			t.Errorf("Read in a new namespace: %v", show(cell))
		}
	}
	if cells := c.list(); len(cells) != 0 {
		t.Errorf("List after Reads: %d cells, the first is %v", len(cells), show(cells[0]))
	}
}

func testCreate(t *testing.T, open opener) {
	a, b := pair(t, open)
	made := a.swap(absent(7), "first")
	a.holds(made)
	b.holds(made)
	a.conflicts(absent(7)) // there is one by now, whoever asks
	b.conflicts(absent(7))
	b.lists(map[int64]lease.Cell{7: made})

	// One that is not there has no other version than 0.
	b.conflicts(lease.Cell{Node: 8, Version: made.Version})
	b.conflicts(lease.Cell{Node: 8, Version: 1})
	b.lists(map[int64]lease.Cell{7: made})
}

func testSwap(t *testing.T, open opener) {
	a, b := pair(t, open)
	first := a.swap(absent(3), "first")
	other := a.swap(absent(4), "other")
	second := b.swap(first, "second")
	a.conflicts(first)
	b.conflicts(first)
	third := a.swap(second, "second") // the same value again is a new version
	b.conflicts(second)
	for _, wrong := range []uint64{0, first.Version, second.Version, third.Version + 1, third.Version + 1<<32, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		b.conflicts(lease.Cell{Node: 3, Version: wrong})
	}
	// Versions are each cell's own.
	if other.Version != third.Version {
		a.conflicts(lease.Cell{Node: 3, Version: other.Version})
	}
	a.holds(third)
	b.holds(other)
}

func testVersions(t *testing.T, open opener) {
	a, b := pair(t, open)
	seen := map[uint64]int{0: -1}
	cell := absent(1)
	for i := range 300 {
		c := []client{a, b}[i%2]
		cell = c.swap(cell, "value "+fmt.Sprint(i%3))
		if before, ok := seen[cell.Version]; ok {
			t.Fatalf("write %d has version %d, as write %d had", i, cell.Version, before)
		}
		seen[cell.Version] = i
	}
}

func testOldValue(t *testing.T, open opener) {
	c := one(t, open)
	cell := c.swap(lease.Cell{Node: 2, Value: []byte("never written")}, "first")
	cell.Value = []byte("not what it is")
	cell = c.swap(cell, "second")
	cell.Value = nil
	c.swap(cell, "third")
}

func testReadAfterWrite(t *testing.T, open opener) {
	a, b := pair(t, open)
	cell := absent(5)
	for i := range 300 {
		writer, reader := a, b
		if i%2 == 1 {
			writer, reader = b, a
		}
		cell = writer.swap(cell, fmt.Sprint("write ", i))
		reader.holds(cell)
	}
}

func testValues(t *testing.T, open opener) {
	a, b := pair(t, open)
	t.Run("lengths", func(t *testing.T) {
		// Half of the lengths end in the middle of a character, but for the filling.
		parallel(t, 8, func(worker int) error {
			cell := absent(int64(100 + worker))
			for n := worker; n <= lease.MaxValue; n += 8 {
				if err := keeps(a, b, &cell, text(n)); err != nil {
					return fmt.Errorf("a value of %d bytes: %w", n, err)
				}
			}
			return nil
		})
	})
	t.Run("characters", func(t *testing.T) {
		cell := absent(99)
		for _, value := range oddValues() {
			if err := keeps(a, b, &cell, value); err != nil {
				t.Errorf("%q: %v", value, err)
			}
		}
		b.lists(map[int64]lease.Cell{99: cell, 100: a.read(100), 101: a.read(101), 102: a.read(102),
			103: a.read(103), 104: a.read(104), 105: a.read(105), 106: a.read(106), 107: a.read(107)})
	})
}

// keeps writes a value by one client and reads it by another.
func keeps(a, b client, cell *lease.Cell, value string) error {
	next, ok, err := a.trySwap(*cell, value)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("Swap at version %d: conflict, but nobody else has written", cell.Version)
	}
	*cell = next
	ctx, cancel := limited()
	defer cancel()
	is, err := b.Read(ctx, cell.Node)
	if err != nil {
		return err
	}
	if !same(is, next) {
		return fmt.Errorf("was read back as %v, want %v", show(is), show(next))
	}
	return nil
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

// oddValues returns texts that are easily taken for something else on the way.
func oddValues() []string {
	odd := []string{
		"", " ", "  both ends  ", "\n", "a\nb\r\nc\n", "\t", "null", "NULL", "0", "-1", "1e9", "{}", `{"limit":"1"}`,
		`'`, `''`, `"`, "`", `\`, `\\`, `\n`, `\x00`, `\u0000`, "%", "%s%d", "$1", "?", ":a", "*", ";--", "/*",
		"\uFEFFwith a mark", "\uFFFD", "e\u0301", "\u00e9", "\u202eright to left", "שלום", "日本語", "\U0010FFFF", "\u2028",
		"ends in a space ", "ends in a space", "Case", "case", "ß", "ss",
	}
	for c := rune(1); c < 32; c++ {
		odd = append(odd, fmt.Sprintf("control %c here", c))
	}
	return append(odd, "\x7f", "\u0085", strings.Repeat("€", lease.MaxValue/3), strings.Repeat("\\", lease.MaxValue))
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
	made, err := c.Swap(ctx, absent(6), value)
	if err != nil {
		t.Fatal(err)
	}
	spoil(value)
	if string(made.Value) != "kept" {
		t.Errorf("what Swap returned changes with the caller's value: %v", show(made))
	}
	want := lease.Cell{Node: 6, Version: made.Version, Value: []byte("kept")}
	c.holds(want)
	spoil(made.Value)
	c.holds(want)
	spoil(c.read(6).Value)
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

func testNodes(t *testing.T, open opener) {
	a, b := pair(t, open)
	want := make(map[int64]lease.Cell)
	for _, node := range []int64{0, 1, 9, 10, 11, 100, 255, 256, 1023, 1024, 65535, 65536, 1000000, 1 << 21, lastNode - 1, lastNode} {
		want[node] = a.swap(absent(node), fmt.Sprint("node ", node))
	}
	for _, cell := range want {
		b.holds(cell)
	}
	b.lists(want)
}

func testManyCells(t *testing.T, open opener) {
	const cells, workers = 1024, 16
	a, b := pair(t, open)
	var mu sync.Mutex
	want := make(map[int64]lease.Cell)
	parallel(t, workers, func(worker int) error {
		for node := int64(worker); node < cells; node += workers {
			cell, ok, err := a.trySwap(absent(node), text(200)+fmt.Sprint(node))
			if err != nil || !ok {
				return fmt.Errorf("node %d: created: %v, %w", node, ok, err)
			}
			mu.Lock()
			want[node] = cell
			mu.Unlock()
		}
		return nil
	})
	b.lists(want)
	a.lists(want)
	want[500] = a.swap(want[500], "changed")
	b.lists(want)
}

func testNamespaces(t *testing.T, open opener) {
	root := fresh()
	names := []string{"", "a", "ab", "a-b", "a_b", "axb", "A", "a-", "a_", "-a", "_", "-", "1", "01"}
	for i, name := range names {
		names[i] = root + name
	}
	longest := root
	for lease.CheckNamespace(longest+"m") == nil {
		longest += "m"
	}
	names = append(names, longest, longest[:len(longest)-1])
	cells := make([]lease.Cell, len(names))
	for i, name := range names {
		c := client{t, open(t, name)}
		if is := c.read(1); is.Version != 0 {
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
		c.lists(map[int64]lease.Cell{1: cells[i]})
		cells[i] = c.swap(cells[i], name+" again")
	}
	for i, name := range names {
		client{t, open(t, name)}.holds(cells[i])
	}
}
