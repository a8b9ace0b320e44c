package explore

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	full  = flag.Bool("explore.full", false, "search the large worlds as well")
	limit = flag.Duration("explore.limit", 0, "end each search after so long, complete or not; 0 is never")
)

// Worlds searches models completely in which nothing breaks what must hold, and prints their figures;
// the large ones with -explore.full only. Of the small ones it also checks the keys by [Check].
func Worlds[S any, M Model[S]](t *testing.T, small, large map[string]M) {
	for _, worlds := range []map[string]M{small, large} {
		for _, name := range slices.Sorted(maps.Keys(worlds)) {
			t.Run(name, func(t *testing.T) {
				if _, is := large[name]; is && !*full {
					t.Skip("needs -explore.full")
				}
				r := Search(worlds[name], *limit)
				t.Log(r)
				if r.Violation != nil {
					t.Fatal(r.Violation)
				}
				require.True(t, r.Complete || *limit > 0)
			})
		}
	}
	for name, m := range small {
		states, keys, err := Check(m, most)
		t.Logf("%s: %d states with %d keys have the same steps", name, states, keys)
		require.NoError(t, err, name)
	}
}

// most is how many states of each small world Worlds checks the keys of.
const most = 300

// Mutant is a way to break a protocol.
type Mutant[S any] struct {
	Name, Change string
	Model        Model[S] // a small world that is broken in this way
	Err          error    // that its search finds
}

// Mutants searches a world for each mutant, until it breaks what must hold.
func Mutants[S any](t *testing.T, mutants []Mutant[S]) {
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			r := Search(m.Model, time.Minute)
			t.Log(m.Change, r)
			require.NotNil(t, r.Violation)
			t.Log(r.Violation)
			require.ErrorIs(t, r.Violation.Err, m.Err)
		})
	}
}
