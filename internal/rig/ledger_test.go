package rig

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counter is the model of values in the order of real time. Its state is the highest value so
// far. A call takes values above it: the next ones, unless calls that are not in the ledger took
// some between. A reading returns it, or a higher one that such a call took.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, _ any) (bool, any) {
		high, e := state.(int64), in.(Entry)
		if e.N == 0 {
			return e.First >= high, e.First
		}
		return e.First > high, e.last()
	},
}

// The sweep over a ledger says the same as porcupine does, on random histories of calls and
// readings of which about half are linearizable.
func TestDisorderAsPorcupineSeesIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	linearizable := 0
	const histories = 4000
	for range histories {
		var l Ledger
		var operations []porcupine.Operation
		high := int64(0)
		for i := range 2 + random.IntN(6) {
			e := Entry{First: high + random.Int64N(3), N: random.Int64N(4), Source: fmt.Sprint(i % 2)} // which makes no difference
			if e.N > 0 {
				e.First++
			}
			high = e.last()
			e.Begin = int64(10*i) + random.Int64N(40)
			e.End = e.Begin + random.Int64N(40)
			if e.N > 1 && random.IntN(20) == 0 { // it is read in the middle
				l.Note(Entry{First: e.First, Begin: e.Begin, End: e.End})
				operations = append(operations, porcupine.Operation{Input: Entry{First: e.First}, Call: e.Begin, Return: e.End})
			}
			l.Note(e)
			operations = append(operations, porcupine.Operation{ClientId: i, Input: e, Call: e.Begin, Return: e.End})
		}
		n, example := l.Disorder(false)
		want := porcupine.CheckOperations(counter, operations)
		require.Equal(t, want, n == 0, "%s: %+v", example, l.entries)
		if want {
			linearizable++
		}
	}
	assert.InDelta(t, histories/2, linearizable, histories/4)
}

// A value that came twice is found, whatever calls lie between, and only then.
func TestTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls [][]int64 // the values of each
		twice int64
		says  string
	}{
		"none":                 {[][]int64{{5, 6, 7}, {1, 2}, {9}, {3, 4}}, 0, ""},
		"one":                  {[][]int64{{1}, {2}, {1}}, 1, "1 came to 0 and to 2"},
		"thrice":               {[][]int64{{1}, {1}, {1}}, 2, "1 came to 0 and to 1"},
		"in one call":          {[][]int64{{1, 1}}, 1, "1 came to 0 and to 0"},
		"in a batch":           {[][]int64{{10, 11, 12, 13}, {12}}, 1, "12 came to 1 and to 0"},
		"batches":              {[][]int64{{10, 11, 12, 13}, {12, 13, 14}}, 2, "12 came to 0 and to 1"},
		"in a batch of before": {[][]int64{{1, 2, 3, 4, 5}, {2}, {3, 4}}, 2, "3 came to 2 and to 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for source, values := range c.calls {
				l.Add(fmt.Sprint(source), 0, 1, values...)
			}
			l.Note(Entry{First: 2}) // a reading takes nothing
			n, example := l.Twice()
			assert.Equal(t, c.twice, n)
			assert.Equal(t, c.says, example)
		})
	}
}
