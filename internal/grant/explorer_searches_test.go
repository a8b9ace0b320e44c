package grant

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/explore"
)

var full = flag.Bool("explore.full", false, "search the large worlds, for up to 10 minutes each")

var most = flag.Int("explore.most", 100, "states of each search whose keys are checked")

// searches are the worlds in which nothing breaks what must hold.
var searches = []struct {
	name string
	full bool // searched with the flag only
	bounds
}{
	{"one cell", false, bounds{procs: 2, cells: 1, ticks: 3, window: 1, net: 2}},
	{"window of two", false, bounds{procs: 2, cells: 1, ticks: 4, window: 2, net: 1}},
	{"order", false, bounds{procs: 2, cells: 2, ticks: 2, window: 1, net: 1, order: true}},
	{"two cells", false, bounds{procs: 2, cells: 2, ticks: 2, window: 1, net: 1}},
	{"waits", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, waits: true}},
	{"plain", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, plain: true}},
	{"plain, waits", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, plain: true, waits: true}},
	{"apart", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, apart: true}},
	{"back", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, back: true, kept: 2}},
	{"stale", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, stale: 2, kept: 2}},
	{"told", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, copied: true}},
	{"untold", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, untold: true}},
	{"locker", false, bounds{procs: 2, cells: 2, ticks: 2, window: 1, locker: true}},
	{"pinned", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, pinned: true}},
	{"damaged", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, damaged: true}},
	{"failing", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, failing: true, layout: true}},
	{"failing, pinned", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, failing: true, pinned: true, damaged: true}},
	{"failing, locker", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, failing: true, locker: true}},
	{"failing, plain", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, failing: true, plain: true}},
	{"failing, plain locker", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, failing: true, plain: true, locker: true}},
	{"failing, plain pinned", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, failing: true, plain: true, pinned: true, damaged: true}},
	{"stale, damaged", false, bounds{procs: 1, cells: 1, ticks: 2, window: 1, stale: 1, kept: 1, damaged: true}},
	{"reserved", false, bounds{procs: 2, cells: 1, ticks: 3, window: 1, reserves: true}},
	{"reserved, pinned", false, bounds{procs: 2, cells: 1, ticks: 3, window: 1, reserves: true, pinned: true}},
	{"wide", false, bounds{procs: 1, cells: 1, ticks: 2, window: 1, wide: true}},
	{"chosen", false, bounds{procs: 1, cells: 2, ticks: 3, window: 1, chosen: true}},
	{"chosen, one cell", false, bounds{procs: 1, cells: 1, ticks: 4, window: 1, chosen: true}},
	{"moves", false, bounds{procs: 2, cells: 2, ticks: 3, window: 1, net: 1, moves: true}},
	{"told late", false, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, copied: true, waits: true}},

	{"plain, two cells", true, bounds{procs: 2, cells: 2, ticks: 2, window: 1, plain: true}},
	{"plain, waits, three ticks", true, bounds{procs: 2, cells: 1, ticks: 3, window: 1, net: 1, plain: true, waits: true}},
	{"apart, late writes", true, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, apart: true}},
	{"back, writes land twice", true, bounds{procs: 2, cells: 1, ticks: 2, window: 1, back: true, twice: true, kept: 2}},
	{"back, late writes", true, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, back: true, kept: 2}},
	{"stale, late writes", true, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, stale: 2, kept: 2}},
	{"untold, late writes", true, bounds{procs: 2, cells: 1, ticks: 2, window: 1, net: 1, untold: true}},
	{"damaged, two cells", true, bounds{procs: 2, cells: 2, ticks: 2, window: 1, net: 1, damaged: true}},
	{"back three ticks", true, bounds{procs: 2, cells: 1, ticks: 3, window: 1, back: true, kept: 2}},
	{"stale three ticks", true, bounds{procs: 2, cells: 1, ticks: 3, window: 1, stale: 2, kept: 3}},
	{"chosen, four ticks", true, bounds{procs: 1, cells: 2, ticks: 4, window: 1, chosen: true}},
	{"main", true, bounds{procs: 3, cells: 2, ticks: 3, window: 1, net: 2}},
	{"main window", true, bounds{procs: 2, cells: 2, ticks: 4, window: 2, net: 1}},
	{"three processes", true, bounds{procs: 3, cells: 1, ticks: 3, window: 1, net: 2}},
	{"three processes two ticks", true, bounds{procs: 3, cells: 2, ticks: 2, window: 1, net: 1}},
	{"two processes three ticks", true, bounds{procs: 2, cells: 2, ticks: 3, window: 1, net: 2}},
}

// model is the world of the bounds.
func (b bounds) model() explore.Model[state, step] {
	if b.apart {
		return struct{ explore.Model[state, step] }{&world{b}}
	}
	return &world{b}
}

func TestExplorer(t *testing.T) {
	for _, s := range searches {
		t.Run(s.name, func(t *testing.T) {
			if s.full && !*full {
				t.Skip("needs -explore.full")
			}
			r := explore.Search(s.model(), explore.Limits{States: 60e6, Time: 10 * time.Minute})
			t.Log(r)
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			require.True(t, r.Complete)
		})
	}
}

// TestExplorerKeys checks that no key leaves out what can matter.
func TestExplorerKeys(t *testing.T) {
	for _, s := range searches {
		if s.full {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			states, keys, err := explore.Check(s.model(), *most)
			t.Logf("%d states with %d keys", states, keys)
			require.NoError(t, err)
		})
	}
}

// hanging is a world whose store answers no claim, so that a process remembers many of unknown
// outcome. Its key counts them.
type hanging struct{ explore.Model[state, step] }

func (h hanging) Key(s *state, buf []byte) []byte {
	return append(h.Model.Key(s, buf), byte(len(s.procs[0].m.claims)))
}

func (h hanging) Steps(s *state, yield func(step, *state, error)) {
	h.Model.Steps(s, func(x step, next *state, err error) {
		if x.kind == lost || x.kind == works && x.fate == 1 {
			yield(x, next, err)
		}
	})
}

// TestExplorerHanging searches claims beyond the most that are remembered.
func TestExplorerHanging(t *testing.T) {
	r := explore.Search(hanging{&world{bounds{procs: 1, cells: 1, ticks: 2, window: 1, net: 1, plain: true}}}, explore.Limits{})
	t.Log(r)
	require.Nil(t, r.Violation)
	require.True(t, r.Complete)
	require.GreaterOrEqual(t, r.Depth, maxClaims)
}
