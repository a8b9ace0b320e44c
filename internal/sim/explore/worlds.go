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
// the large ones with -explore.full only. Of the small ones it also checks the keys, but for those that are loose:
// there states are alike that differ in what a process has yet to read. With -short, each search ends after half a second.
func Worlds[S any, M Model[S]](t *testing.T, small, large map[string]M, loose ...string) {
	ends := *limit
	if testing.Short() && ends == 0 {
		ends = time.Second / 2
	}
	for _, worlds := range []map[string]M{small, large} {
		for _, name := range slices.Sorted(maps.Keys(worlds)) {
			t.Run(name, func(t *testing.T) {
				_, large := large[name]
				if large && !*full {
					t.Skip("needs -explore.full")
				}
				r := Search(worlds[name], ends, !large && !slices.Contains(loose, name))
				t.Log(r)
				if r.Violation != nil {
					t.Fatal(r.Violation)
				}
				require.NoError(t, r.Unlike)
				require.True(t, r.Complete || ends > 0)
			})
		}
	}
}

// Mutant is a way to break a protocol.
type Mutant[S any] struct {
	Name, Change string
	Model        Model[S] // a small world that is broken in this way
	Err          error    // that its search finds
}

// Mutants searches a world for each mutant, until it breaks what must hold. On a busy machine that takes its time.
func Mutants[S any](t *testing.T, mutants []Mutant[S]) {
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			r := Search(m.Model, 0, false)
			t.Log(m.Change, r)
			require.NotNil(t, r.Violation)
			t.Log(r.Violation)
			require.ErrorIs(t, r.Violation.Err, m.Err)
		})
	}
}
