package count

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/explore"
)

var full = flag.Bool("explore.full", false, "search the worlds at their full bounds")

var limit = flag.Duration("explore.limit", 0, "end each search after so long, complete or not; 0 is never")

var worlds = []struct {
	name        string
	small, full world
}{
	{
		name:  "main",
		small: world{procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, lose: true, others: true},
		full:  world{procs: 3, numbers: 7, step: 2, batch: 1, kept: 1, lose: true, others: true},
	}, {
		name:  "three processes",
		small: world{procs: 3, numbers: 2, step: 2, batch: 1, kept: 1, lose: true, others: true},
		full:  world{procs: 3, numbers: 4, step: 2, batch: 2, kept: 1, lose: true, others: true},
	}, {
		name:  "four processes",
		small: world{procs: 4, numbers: 1, step: 1, batch: 1, lose: true},
		full:  world{procs: 4, numbers: 3, step: 2, batch: 1, lose: true, others: true},
	}, {
		name:  "steps of 3",
		small: world{procs: 2, numbers: 3, step: 3, batch: 1, lose: true},
		full:  world{procs: 2, numbers: 6, step: 3, batch: 1, kept: 1, lose: true, others: true},
	}, {
		name:  "maximum",
		small: world{procs: 2, numbers: 2, step: 2, batch: 2, kept: 1, lose: true, maximum: true},
		full:  world{procs: 2, numbers: 5, step: 2, batch: 2, kept: 1, lose: true, others: true, maximum: true},
	}, {
		name:  "no gap",
		small: world{procs: 1, numbers: 8, step: 3, batch: 1, kept: 1, clean: true},
		full:  world{procs: 1, numbers: 12, step: 4, batch: 1, kept: 1, clean: true},
	}, {
		name:  "worn",
		small: world{procs: 1, numbers: 2, step: 1, batch: 1, lose: true, worn: true},
		full:  world{procs: 2, numbers: 2, step: 1, batch: 1, lose: true, worn: true},
	}, {
		name:  "apart",
		small: world{procs: 2, numbers: 2, step: 1, batch: 1, kept: 1, lose: true, others: true, apart: true},
		full:  world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, lose: true, others: true, apart: true},
	}, {
		name:  "plain",
		small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 1, lose: true, others: true, plain: true},
		full:  world{procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, writes: 4, flying: 2, lose: true, others: true, plain: true},
	}, {
		name:  "ordered",
		small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, calls: 1, ordered: true, lose: true, apart: true},
		full:  world{procs: 2, numbers: 4, step: 2, batch: 2, kept: 1, calls: 2, ordered: true, lose: true, apart: true},
	}, {
		name:  "back",
		small: world{procs: 2, numbers: 2, step: 1, batch: 1, writes: 4, flying: answered, back: true, lose: true},
		full:  world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, writes: 4, flying: 1, back: true, lose: true},
	}, {
		name:  "back, steps of 2",
		small: world{procs: 2, numbers: 3, step: 2, batch: 1, writes: 4, flying: answered, back: true, lose: true},
		full:  world{procs: 2, numbers: 4, step: 2, batch: 1, writes: 5, flying: answered, back: true, lose: true},
	}, {
		name:  "back, moved",
		small: world{procs: 2, numbers: 2, step: 1, batch: 1, writes: 3, flying: answered, back: true, move: true, lose: true},
		full:  world{procs: 2, numbers: 3, step: 2, batch: 1, writes: 4, flying: answered, back: true, move: true, lose: true},
	}, {
		name:  "back, created anew",
		small: world{procs: 1, numbers: 2, step: 1, batch: 1, writes: 4, flying: answered, back: true, remove: true, lose: true},
		full:  world{procs: 2, numbers: 3, step: 1, batch: 1, writes: 4, flying: answered, back: true, remove: true, lose: true},
	}, {
		name:  "stale",
		small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 1, stale: 1, lose: true},
		full:  world{procs: 2, numbers: 4, step: 2, batch: 1, kept: 2, writes: 4, flying: 2, stale: 2, lose: true},
	}, {
		name:  "restored",
		small: world{procs: 2, numbers: 2, step: 1, batch: 1, flying: 2, restore: true, apart: true},
		full:  world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, flying: 2, restore: true, lose: true, apart: true},
	}, {
		name:  "moved",
		small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, move: true, lose: true},
		full:  world{procs: 2, numbers: 4, step: 2, batch: 2, kept: 1, move: true, lose: true},
	}, {
		name:  "created anew",
		small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, remove: true, lose: true},
		full:  world{procs: 2, numbers: 4, step: 2, batch: 2, kept: 1, remove: true, lose: true},
	},
}

func TestExplore(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			bounds := &w.small
			if *full {
				bounds = &w.full
			}
			r := explore.Search(bounds, explore.Limits{Time: *limit})
			t.Log(r)
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			require.True(t, r.Complete || *full, "the search was cut short")
		})
	}
}

// TestExploreKeys makes sure that states with one key have the same steps.
func TestExploreKeys(t *testing.T) {
	for _, w := range worlds {
		if w.small.worn { // its writes were never sent, so they do not go with the version
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			_, _, err := explore.Check(&w.small, 500)
			require.NoError(t, err)
		})
	}
}
