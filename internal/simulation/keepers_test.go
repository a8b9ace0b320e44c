//go:build simulate

package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/strategies"
)

// TestLeasesAreReached shows that the programs which TestClean runs come to what is
// checked of leases.
func TestLeasesAreReached(t *testing.T) {
	traces, leases := "", 0
	for seed := uint64(1); seed <= 300; seed++ {
		c := Random(seed)
		if c.Lease {
			leases++
			var trace strings.Builder
			c.Trace = &trace
			require.False(t, Run(c).Failed(), "seed %d", seed)
			traces += trace.String()
		}
	}
	assert.Greater(t, leases, 60)
	for _, reached := range []string{
		"error *generator.GrantError", "error *generator.EndOfTimeError", "error *errors.errorString", // ErrClosed
		"which is refused: true, for good: true", "which is refused: true, for good: false",
		"keeper: or free", "caller 0: or free", // of the one that ends a span, and of one that helps
		"keeper: store limit", "compare-and-swap soft#2: ", "next#2 fails: it is 0x1", // a race to end it
		"keeper: revokes", "draws ",
		"waits for 100ms", "has closed the generator",
	} {
		assert.Contains(t, traces, reached)
	}
}

// TestGrantsInOrder runs a program of which all is known.
func TestGrantsInOrder(t *testing.T) {
	var trace strings.Builder
	result := Run(Config{
		Lease: true, Term: 5, Start: time.Second, SequenceBits: 2, Strategy: strategies.BorrowUpTo(time.Second),
		Ops:   []Op{{Kind: Batch, N: 9}, {Kind: Move, N: 3}, {Kind: Extend, N: 9}, {Kind: Revoke}, {Kind: Batch, N: 9}, {Kind: Move, N: 0}, {Kind: Stream, N: 9}, {Kind: Seal}, {Kind: IDs, N: 1}},
		Trace: &trace,
	})
	require.False(t, result.Failed(), "%v %v", result.Violations, result.Err)
	assert.Contains(t, trace.String(), "grants node 3 ")
	assert.Contains(t, trace.String(), "grants node 0 ")
	assert.Contains(t, trace.String(), "keeper: or free")
}

func TestRefusesLeases(t *testing.T) {
	for says, c := range map[string]Config{
		"lease of 0 ticks":         {Lease: true},
		"and no Core":              {Lease: true, Term: 1, Core: func(Env) Core { return nil }},
		"a node field":             {Lease: true, Term: 1, Nodeless: true},
		"seal: there is no lease":  {Ops: []Op{{Kind: Seal}}},
		"extend 4: there is no":    {Ops: []Op{{Kind: Extend, N: 4}}},
		"move to node 4 after 1ms": {Lease: true, Term: 1, Ops: []Op{{Kind: Move, N: 4, D: ms}}},
		"extend -1: give 0 to":     {Lease: true, Term: 1, Ops: []Op{{Kind: Extend, N: -1}}},
	} {
		assert.ErrorContains(t, Run(c).Err, says)
	}
}
