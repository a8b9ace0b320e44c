package generatortest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	gt "github.com/tickflake/tickflake/generator/generatortest"
)

// Several callers use all that the process has, and ask for as many IDs as the
// script says.
func TestCallersUseAllCalls(t *testing.T) {
	c := &tape{}
	r := gt.RunScript(c.loose(), parse("callers 4; ids 500; ids 500; ids 400 over 1s"))
	assert.Empty(t, lines(r))
	assert.Equal(t, 1400+4, r.Issued)
	assert.Equal(t, 1400+4, c.calls, "and no more")
	assert.Greater(t, len(c.batches), 50)
	assert.LessOrEqual(t, slices.Max(c.batches), 3)
	assert.Contains(t, c.batches, 3)

	r = gt.RunScript((&tape{change: bare}).loose(), parse("callers 4; ids 500"))
	assert.Empty(t, lines(r))
	assert.Equal(t, 500+4, r.Issued, "by Next alone")

	// Each process has a stream of its own for single calls.
	for script, want := range map[string]int{"stream 2; stream 3; ids 1; stream 1": 1, "stream 1; crash; stream 1; restart; stream 1": 3, "stream 1; takeover 1s; stream 1": 2} {
		gt.RunScript(c.loose(), parse(script))
		assert.Equal(t, want, c.streams, script)
	}
}

// bare leaves a process its Next.
func bare(p *gt.Process[tid]) { p.NextN, p.Stream = nil, nil }

// What batches return among others is judged.
func TestCallersAreJudgedInBatches(t *testing.T) {
	for want, fill := range map[gt.Kind]func(ids []tid) int{
		gt.Disorder:   func(ids []tid) int { slices.Reverse(ids); return len(ids) },
		gt.WrongError: func(ids []tid) int { return len(ids) - 1 },
	} {
		s := (&tape{change: func(p *gt.Process[tid]) {
			batch := p.NextN
			p.NextN = func(ids []tid) (int, error) { _, err := batch(ids); return fill(ids), err }
		}}).loose()
		s.Claim.Unordered = false
		assert.GreaterOrEqual(t, gt.RunScript(s, parse("callers 3; ids 600")).Violated[want], 50, want)
	}
}

// A generator that waits forever must not fail for one of several callers, unless the
// others can make it fail.
func TestCallersMustBeServed(t *testing.T) {
	for name, c := range map[string]struct {
		claim  gt.Claim
		script string
		want   int // of those among others, and of the four after the script
	}{
		"waits":                {claim(wait(forever), wait(0)), "callers 3; ids 20", 20 + 4},
		"waits for a while":    {claim(wait(time.Hour), wait(0)), "callers 3; ids 20", 4},
		"others may run ahead": {claim(gt.Bound{Wait: forever, Borrow: ms}, wait(0)), "callers 3; ids 20", 4},
		"the clock is behind":  {claim(wait(forever), wait(0)), "callers 3; step -1h; ids 20", 3},
	} {
		s := (&tape{then: no, change: func(p *gt.Process[tid]) { p.NextN = nil }}).subject(c.claim)
		r := gt.RunScript(s, parse(c.script))
		assert.Equal(t, c.want, r.Violated[gt.Rejected], name)
		assert.Len(t, r.Violated, 2, "and that it does not recover")
	}
	s := (&tape{change: func(p *gt.Process[tid]) { p.NextN = func([]tid) (int, error) { return 0, errNo } }}).subject(claim(wait(forever), wait(0)))
	assert.Empty(t, lines(gt.RunScript(s, parse("callers 3; ids 12; pass 1ms; ids 12"))), "a batch among others may fail as a whole")
}

// A process must not return nil for a stream.
func TestNoStream(t *testing.T) {
	tp := &tape{change: func(p *gt.Process[tid]) { p.Stream = func() func() (tid, error) { return nil } }}
	r := gt.RunScript(tp.loose(), parse("ids 1; stream 2; ids 5"))
	assert.Equal(t, []string{"no-start: Stream returned nil (step 2, call 1, 0s in)"}, lines(r), "the script ends there")
	assert.Equal(t, 1, tp.closes)
}
