package fleet

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
// some between.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, _ any) (bool, any) {
		high, e := state.(int64), in.(Entry)
		return e.First > high, e.last()
	},
}

// The sweeps over a ledger say the same as porcupine does, and as a look at every value does, on random
// histories of calls of which about half are linearizable.
func TestLedger(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	linearizable := 0
	const histories = 4000
	for range histories {
		var l Ledger
		var operations []porcupine.Operation
		high, common, came := int64(0), int64(0), map[int64]bool{}
		for i := range 2 + random.IntN(6) {
			e := Entry{First: high + 1 + random.Int64N(3), N: 1 + random.Int64N(3), Source: fmt.Sprint(i % 2)} // which makes no difference
			if random.IntN(10) == 0 {                                                                          // some of its values may come again
				e.First = max(e.First-random.Int64N(5), 1)
			}
			high = max(high, e.last())
			var values []int64
			for v := e.First; v < e.First+e.N; v++ {
				values = append(values, v)
				if came[v] {
					common++
				}
				came[v] = true
			}
			e.Begin = int64(10*i) + random.Int64N(40)
			e.End = e.Begin + random.Int64N(40)
			l.Add(e.Source, e.Begin, e.End, values...)
			operations = append(operations, porcupine.Operation{ClientId: i, Input: e, Call: e.Begin, Return: e.End})
		}
		twice, shown := l.Twice()
		require.True(t, twice <= common && (twice > 0) == (common > 0) && (shown != "") == (common > 0), "%d, want at most %d: %s", twice, common, shown)
		n, example := l.Disorder(false)
		want := porcupine.CheckOperations(counter, operations)
		require.Equal(t, want, n == 0, "%s: %+v", example, l.entries)
		if want {
			linearizable++
		}
	}
	assert.InDelta(t, histories/2, linearizable, histories/4)
	var l Ledger
	l.Add("one", 0, 1, 7, 7)
	n, example := l.Twice()
	assert.Equal(t, "1: 7 came to one and to one", fmt.Sprint(n, ": ", example))
}
