//go:build simulate

package simulation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCounted finds nothing wrong with windows of counted numbers.
func TestCounted(t *testing.T) {
	result, found := Search(t.Context(), RandomCounted, 1, 4*seeds(t))
	if found {
		t.Fatalf("seed %d: %v %v\n%v\n%s", result.Config.Seed, result.Violations, result.Err, result.Config.Ops,
			strings.Join(result.Trace, "\n"))
	}
}

// TestCountedIsReached shows that the programs which TestCounted runs come to what is checked
// of them.
func TestCountedIsReached(t *testing.T) {
	traces := ""
	for seed := uint64(1); seed <= 300; seed++ {
		var trace strings.Builder
		c := RandomCounted(seed)
		c.Trace = &trace
		require.False(t, Run(c).Failed(), "seed %d", seed)
		traces += trace.String()
	}
	for _, reached := range []string{
		"more true, ok true", "more true, ok false", "more false, ok false", // of a sealed window
		"swap queued: ", "add lost", "keeper: or free", "caller 0: or free", "compare-and-swap next",
		"keeper: revoke", "compare-and-swap free#2 fails", "first false",
	} {
		assert.True(t, strings.Contains(traces, reached), reached)
	}
}

// TestCountedInOrder runs a program of which all is known.
func TestCountedInOrder(t *testing.T) {
	var trace strings.Builder
	result := Run(Config{
		Counted: true, Trace: &trace,
		Ops: []Op{{Kind: Queue, N: 5}, {Kind: Queue, N: 5, D: 3}, {Kind: Count, N: 3}, {Kind: Count, N: 3}, {Kind: Count, N: 2}, {Kind: Count, N: 1}, {Kind: Seal}, {Kind: Count, N: 1}},
	})
	require.False(t, result.Failed(), "%v %v\n%s", result.Violations, result.Err, trace.String())
}

func TestRefusesCounted(t *testing.T) {
	for says, c := range map[string]Config{
		"op 0, ids 1":     {Counted: true, Ops: []Op{{Kind: IDs, N: 1}}},
		"op 0, count 1":   {Ops: []Op{{Kind: Count, N: 1}}},
		"op 0, queue 1":   {Lease: true, Term: 1, Ops: []Op{{Kind: Queue, N: 1}}},
		"op 0, count 0":   {Counted: true, Ops: []Op{{Kind: Count}}},
		"op 0, queue -1 ": {Counted: true, Ops: []Op{{Kind: Queue, N: -1}}},
	} {
		assert.ErrorContains(t, Run(c).Err, says)
	}
}
