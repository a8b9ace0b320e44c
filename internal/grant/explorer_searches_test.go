package grant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/explore"
)

func TestExploreSmall(t *testing.T) {
	for name, b := range map[string]bounds{
		"2p1c2t": {procs: 2, cells: 1, ticks: 2, window: 1, net: 1},
		"2p1c3t": {procs: 2, cells: 1, ticks: 3, window: 1, net: 2},
		"2p2c2t": {procs: 2, cells: 2, ticks: 2, window: 1, net: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Search(&world{b}, explore.Limits{States: 3e6})
			t.Log(r)
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			require.True(t, r.Complete)
		})
	}
}

func TestExploreKey(t *testing.T) {
	w := &world{bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1}}
	states, keys, err := explore.Check(w, 20000)
	t.Log(states, keys)
	require.NoError(t, err)
}
