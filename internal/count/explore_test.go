package count

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/explore"
)

var full = flag.Bool("explore.full", false, "search the worlds at their full bounds")

var worlds = []struct {
	name        string
	small, full world
}{
	{name: "main", small: world{procs: 2, numbers: 4, step: 2, batch: 2, kept: 1, lose: true, others: true}},
	{name: "maximum", small: world{procs: 2, numbers: 3, step: 2, batch: 2, kept: 1, lose: true, maximum: true}},
	{name: "no gap", small: world{procs: 1, numbers: 8, step: 3, batch: 1, kept: 1, clean: true}},
	{name: "apart", small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, lose: true, others: true, apart: true}},
	{name: "plain", small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 2, lose: true, others: true, plain: true}},
	{name: "ordered", small: world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, calls: 1, ordered: true, lose: true, apart: true}},
	{name: "back", small: world{procs: 2, numbers: 2, step: 1, batch: 1, kept: 1, writes: 3, flying: 1, back: true, lose: true}},
	{name: "stale", small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, writes: 3, flying: 1, stale: 1, lose: true}},
	{name: "restored", small: world{procs: 2, numbers: 2, step: 1, batch: 1, kept: 1, flying: 1, restore: true, lose: true, apart: true}},
	{name: "moved", small: world{procs: 2, numbers: 3, step: 2, batch: 1, kept: 1, move: true, lose: true}},
	{name: "created anew", small: world{procs: 2, numbers: 2, step: 2, batch: 1, kept: 1, remove: true, lose: true}},
}

func TestExplore(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			r := explore.Search(&w.small, explore.Limits{States: 100e3})
			t.Log(r)
			if r.Violation != nil {
				t.Log(r.Violation)
			}
			require.Nil(t, r.Violation)
			require.True(t, r.Complete)
		})
	}
}
