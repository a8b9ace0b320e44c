//go:build unix

package service

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ledger has all that callers got. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	ids     []int64
	numbers map[string][]taken // by sequence
}

// taken is a number, and when the call for it began and ended.
type taken struct{ number, begin, end int64 }

// now is the time in nanoseconds by a clock that is never stepped.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func (l *ledger) addIDs(ids ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, ids...)
}

func (l *ledger) addNumber(name string, t taken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.numbers == nil {
		l.numbers = map[string][]taken{}
	}
	l.numbers[name] = append(l.numbers[name], t)
}

// check fails the test if an ID or a number is there twice, or if the numbers of the ordered
// sequence are not in the order of real time. It wants at least so many of each.
func (l *ledger) check(t testing.TB, least int, names ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.ids)
	require.GreaterOrEqual(t, len(l.ids), least, "too few IDs to show anything")
	for i := 1; i < len(l.ids); i++ {
		require.NotEqual(t, l.ids[i-1], l.ids[i], "an ID was issued twice")
	}
	for _, name := range names {
		all := l.numbers[name]
		require.GreaterOrEqual(t, len(all), least, "too few numbers of %s to show anything", name)
		slices.SortFunc(all, func(a, b taken) int { return cmp.Compare(a.number, b.number) })
		for i := 1; i < len(all); i++ {
			require.NotEqual(t, all[i-1].number, all[i].number, "a number of %s was issued twice", name)
		}
		if name == invoices {
			assert.True(t, linearizable(all), "the numbers of %s are not in the order of real time", name)
		}
		t.Logf("%s: %d numbers, up to %d", name, len(all), all[len(all)-1].number)
	}
	t.Logf("%d IDs", len(l.ids))
}

// counter is the model of the ordered mode: each number is above the one before. A call that
// has failed may have taken the numbers between.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		last, number := state.(int64), input.(taken).number
		return number > last, number
	},
}

// linearizable reports whether the calls can have taken effect one after the other, each
// between its begin and its end. all is sorted by number, which is the only order to try: it
// is possible unless a call began after one with a higher number had ended.
func linearizable(all []taken) bool {
	earliest := int64(-1) // the latest begin of a call with a lower number
	for _, c := range all {
		if earliest = max(earliest, c.begin); c.end < earliest {
			return false
		}
	}
	return true
}

// The quick check says the same as porcupine does.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls []taken
		want  bool
	}{
		"in order":     {[]taken{{1, 0, 10}, {2, 20, 30}, {5, 40, 50}}, true},
		"overlapping":  {[]taken{{1, 25, 35}, {2, 20, 30}, {3, 0, 50}}, true},
		"out of order": {[]taken{{1, 20, 30}, {2, 0, 10}}, false},
		"far apart":    {[]taken{{1, 90, 100}, {2, 0, 200}, {3, 10, 20}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, linearizable(c.calls))
			var operations []porcupine.Operation
			for i, call := range c.calls {
				operations = append(operations, porcupine.Operation{ClientId: i, Input: call, Call: call.begin, Return: call.end})
			}
			assert.Equal(t, c.want, porcupine.CheckOperations(counter, operations))
		})
	}
}
