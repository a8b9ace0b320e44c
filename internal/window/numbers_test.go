package window

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted returns a window with the numbers of some ranges, whose soft limits are at their
// beginnings.
func counted(ranges ...Range) *Numbers {
	w := NewNumbers()
	for _, r := range ranges {
		w.Queue(r, r.From)
	}
	return w
}

func TestCount(t *testing.T) {
	tests := []struct {
		name   string
		ranges []Range
		take   []uint64
		first  []int64 // -1: it fails
		more   []bool
		rest   uint64
	}{
		{"nothing is granted", nil, []uint64{1}, []int64{-1}, []bool{true}, 0},
		{"from 0", []Range{{0, 0, 3}}, []uint64{1, 1, 1, 1}, []int64{0, 1, 2, -1}, []bool{true, true, true, true}, 0},
		{"adjoining ranges are one", []Range{{0, 0, 4}, {0, 4, 8}}, []uint64{3, 3, 3, 2}, []int64{0, 3, -1, 6}, []bool{false, true, true, true}, 0},
		{"the rest is given up", []Range{{0, 5, 8}, {0, 20, 24}}, []uint64{2, 2, 2}, []int64{5, 20, 22}, []bool{false, true, true}, 0},
		{"too many for both", []Range{{0, 5, 8}, {0, 20, 24}}, []uint64{5, 3}, []int64{-1, 5}, []bool{true, false}, 4},
		{"a queued range is extended", []Range{{0, 5, 8}, {0, 20, 24}, {0, 24, 30}}, []uint64{10, 1}, []int64{20, -1}, []bool{true, true}, 0},
		{"a third range replaces both", []Range{{0, 5, 8}, {0, 20, 24}, {0, 40, 44}}, []uint64{1}, []int64{40}, []bool{true}, 3},
		{"a range below the taken numbers", []Range{{0, 10, 12}, {0, 4, 14}}, []uint64{2, 2}, []int64{10, 12}, []bool{false, true}, 0},
		{"the last number of all", []Range{{0, MaxNumbers - 1, MaxNumbers + 9}}, []uint64{1, 1}, []int64{MaxNumbers - 1, -1}, []bool{true, true}, 0},
		{"and by an extension", []Range{{0, MaxNumbers - 2, MaxNumbers - 1}, {0, MaxNumbers - 1, MaxNumbers + 9}}, []uint64{1, 1, 1}, []int64{MaxNumbers - 2, MaxNumbers - 1, -1}, []bool{false, true, true}, 0},
		{"the most at once", []Range{{0, 0, MaxNumbers}}, []uint64{MaxNumbers, 1}, []int64{0, -1}, []bool{true, true}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, taken := counted(tt.ranges...), uint64(0)
			for i, n := range tt.take {
				first, more, ok := w.Count(n)
				require.Equal(t, tt.first[i] >= 0, ok, "call %d", i)
				if ok {
					assert.EqualValues(t, tt.first[i], first, "call %d", i)
					taken += n
				}
				assert.Equal(t, tt.more[i], more, "call %d", i)
			}
			assert.Equal(t, tt.rest, w.Rest())
			assert.Equal(t, taken, w.Taken(w.Used()))
		})
	}
}

func TestShort(t *testing.T) {
	w := NewNumbers()
	w.Queue(Range{From: 7, To: 12}, 10)
	count := func(n, want uint64, wantMore bool) {
		t.Helper()
		first, ok := w.Quick(n)
		more := !ok
		if !ok {
			first, _, ok = w.Count(n)
		}
		assert.True(t, ok)
		assert.Equal(t, want, first)
		assert.Equal(t, wantMore, more)
	}
	count(1, 7, false)
	count(2, 8, false)
	assert.False(t, w.Short())
	count(1, 10, true)
	assert.True(t, w.Short(), "the soft limit was passed")
	w.Queue(Range{From: 12, To: 20}, 12)
	assert.False(t, w.Short())
	_, more, _ := w.Count(1)
	assert.False(t, more, "11 is below the soft limit")
	count(1, 12, true)
	w.Queue(Range{From: 30, To: 40}, 30)
	assert.False(t, w.Short(), "a range is queued")
}

// TestQuickWhileDue has a call ask for the next range, and those after it go without the lock, but for one in a
// 64th part of what is left, or in 64 numbers, and for none once the range is queued.
func TestQuickWhileDue(t *testing.T) {
	for size, every := range map[uint64]int{640: 10, 1 << 20: 65} {
		w := counted(Range{To: size})
		asked := func(calls int) (n int) {
			for range calls {
				if _, ok := w.Quick(1); !ok {
					_, more, _ := w.Count(1)
					assert.True(t, more && w.Short())
					n++
				}
			}
			return n
		}
		assert.Equal(t, 1, asked(every))
		assert.Equal(t, 1, asked(every))
		w.Queue(Range{From: size + 60, To: size + 61}, size+60)
		assert.Zero(t, asked(int(size)-2*every))
	}
}

func TestSealedCount(t *testing.T) {
	w := counted(Range{From: 3, To: 8}, Range{From: 20, To: 24})
	w.Count(2)
	end, first := w.Seal()
	assert.True(t, first)
	assert.EqualValues(t, 5, end)
	_, more, ok := w.Count(1)
	assert.False(t, ok)
	assert.False(t, more)
	w.Queue(Range{From: 8, To: 9}, 8)
	assert.EqualValues(t, 7, w.Rest(), "the numbers that were not taken")
	assert.False(t, w.Short())
	assert.EqualValues(t, 5, w.Used())
	assert.EqualValues(t, 2, w.Taken(w.Used()))

	w = counted(Range{From: 3, To: 8})
	w.Count(1)
	w.Seal()
	assert.False(t, w.Short(), "no range is due")

	w = NewNumbers()
	w.Queue(Range{To: MaxNumbers}, MaxNumbers)
	w.Count(MaxNumbers)
	w.Seal()
	_, ok = w.Quick(MaxNumbers)
	assert.False(t, ok, "the sum does not overflow")
}

func TestRevokedCount(t *testing.T) {
	w := counted(Range{From: 3, To: 8}, Range{From: 20, To: 24})
	w.Count(2)
	w.Revoke()
	_, _, ok := w.Count(1)
	assert.False(t, ok)
	assert.False(t, w.Short(), "nothing is due until a call asks")
	assert.EqualValues(t, 2, w.Taken(w.Used()))
	w.Queue(Range{From: 2, To: 9}, 2)
	n, _, ok := w.Count(1)
	assert.True(t, ok)
	assert.EqualValues(t, 5, n, "above all that were taken")
}
