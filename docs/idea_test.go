package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var drawIdea = flag.Bool("draw", false, "write docs/idea.svg and docs/idea-dark.svg anew")

// colours are one theme of the README's picture.
type colours struct{ text, quiet, line, grant, id, wrong string }

// The README's picture is drawn here, so that its light and its dark form differ in colours alone.
func TestIdea(t *testing.T) {
	for file, c := range map[string]colours{
		"idea.svg":      {"#1f2328", "#59636e", "#d1d9e0", "#ddf4ff", "#0969da", "#cf222e"},
		"idea-dark.svg": {"#f0f6fc", "#9198a1", "#3d444d", "#0c2d6b", "#4493f8", "#f85149"},
	} {
		want := idea(c)
		if *drawIdea {
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "go test ./docs -run TestIdea -draw")
	}
}

// idea draws two processes over the time that their IDs carry: what the first was granted, its
// crash, the step of the clock, and where the second begins.
func idea(c colours) string {
	const (
		t0, t1, t2   = 190, 500, 810 // the bounds of the two grants
		crash, back  = 400, 250      // where the first ended, and where the clock stands afterwards
		first, clock = 78, 138       // rows, downwards
		second       = 192
	)
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	label := func(x, y int, colour, anchor, text string) {
		put(`<text x="%d" y="%d" fill="%s" text-anchor="%s">%s</text>`, x, y, colour, anchor, text)
	}
	grant := func(from, to, y int) {
		put(`<rect x="%d" y="%d" width="%d" height="36" rx="6" fill="%s" stroke="%s"/>`, from, y-18, to-from, c.grant, c.line)
	}
	ids := func(from, to, y int, style string) {
		for x := from; x <= to; x += 20 {
			put(`<circle cx="%d" cy="%d" r="5" %s/>`, x, y, style)
		}
	}
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 272" font-family="system-ui, sans-serif" font-size="15" role="img" aria-labelledby="idea">`)
	put(`<title id="idea">The store grants process 1 the ticks from t0 to t1. It crashes and the clock steps back. Process 2 begins at t1, so no ID comes twice.</title>`)
	for i, x := range []int{t0, t1, t2} {
		put(`<path d="M%d 44V232" stroke="%s" stroke-dasharray="3 4"/>`, x, c.line)
		label(x, 36, c.quiet, "middle", fmt.Sprintf("t%d", i))
	}
	label((t0+t1)/2, 36, c.text, "middle", "store grants [t0, t1)")
	label((t1+t2)/2, 36, c.text, "middle", "then [t1, t2)")

	label(20, first+5, c.text, "start", "process 1")
	grant(t0, t1, first)
	ids(t0+12, crash-10, first, `fill="`+c.id+`"`)
	put(`<path d="M%d %dl16 16m0 -16l-16 16" stroke="%s" stroke-width="3"/>`, crash-2, first-8, c.wrong)
	label(crash+22, first+5, c.wrong, "start", "crash")

	label(20, clock+5, c.text, "start", "clock")
	put(`<path d="M%d %dH%dm10 -6l-10 6l10 6" fill="none" stroke="%s" stroke-width="2.5"/>`, crash+6, clock, back, c.text)
	label((crash+back)/2, clock-10, c.text, "middle", "steps back")

	label(20, second+5, c.text, "start", "process 2")
	ids(back, crash-20, second, `fill="none" stroke="`+c.wrong+`" stroke-width="2"`)
	label((back+crash)/2-10, second+34, c.wrong, "middle", "others begin here: duplicates")
	grant(t1, t2, second)
	ids(t1+12, t1+172, second, `fill="`+c.id+`"`)
	label((t1+t2)/2, second+34, c.id, "middle", "tickflake begins at t1: no duplicate")

	put(`<path d="M%d 248H%dm-10 -6l10 6l-10 6" fill="none" stroke="%s"/>`, t0, t2+20, c.quiet)
	label(t0, 266, c.quiet, "start", "time in the ID")
	put(`</svg>`)
	return b.String()
}
