package sequences

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// call is a call that has returned: of NextN, which took n numbers, or with n = 0 of
// Inspect, which read the highest number granted so far, as first.
type call struct {
	process    int
	first, n   int64
	begin, end int64 // by a clock that all callers share
}

// history has the calls of all processes. Calls that failed, or never returned, are not in it:
// they may have taken numbers or not.
type history struct {
	mu    sync.Mutex
	calls []call
}

func (h *history) add(c call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// input is that of an operation on the counter.
type input struct {
	n int64 // of the call
	// after is the highest number that a call of the history took below those that this call
	// took or read. So the search does not try to skip a number that is still to be taken.
	after int64
}

// counter is the model of the ordered mode. Its state is the highest number so far. A call takes
// numbers above it: the next ones, unless a call that is not in the history took some between.
// Inspect reads it, or a higher one that such a call took.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, output any) (bool, any) {
		high, first, n := state.(int64), output.(int64), in.(input).n
		switch {
		case high < in.(input).after:
			return false, high
		case n == 0:
			return first >= high, first
		}
		return first > high, first + n - 1
	},
}

// linearizable reports whether the calls can have taken effect one after the other, each
// between its begin and its end.
func (h *history) linearizable() bool {
	var ends []int64
	for _, c := range h.calls {
		if c.n > 0 {
			ends = append(ends, c.first+c.n-1)
		}
	}
	slices.Sort(ends)
	operations := make([]porcupine.Operation, len(h.calls))
	for i, c := range h.calls {
		in := input{n: c.n}
		below := c.first // the numbers below it count
		if c.n == 0 {
			below++
		}
		if at, _ := slices.BinarySearch(ends, below); at > 0 {
			in.after = ends[at-1]
		}
		operations[i] = porcupine.Operation{ClientId: c.process, Input: in, Output: c.first, Call: c.begin, Return: c.end}
	}
	return porcupine.CheckOperations(counter, operations)
}

// issued checks that no number was issued twice, and returns how many were.
func (h *history) issued(t testing.TB) (n int64) {
	t.Helper()
	taken := slices.DeleteFunc(slices.Clone(h.calls), func(c call) bool { return c.n == 0 })
	slices.SortFunc(taken, func(a, b call) int { return cmp.Compare(a.first, b.first) })
	for i, c := range taken {
		n += c.n
		if i > 0 {
			before := taken[i-1]
			require.GreaterOrEqual(t, c.first, before.first+before.n, "issued twice: by process %d (%d numbers from %d on) and by process %d (%d from %d on)",
				before.process, before.n, before.first, c.process, c.n, c.first)
		}
	}
	return n
}
