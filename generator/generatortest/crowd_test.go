package generatortest_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// counter counts up, for calls, batches and streams. Callers meet where it reads the clock.
type counter struct {
	mu      sync.Mutex
	last    int64
	batches []int       // their sizes
	streams map[int]int // calls of each
}

// subject is the counter, with a process that the test may change.
func (c *counter) subject(change func(*gt.Process[int64])) gt.Subject[int64] {
	return gt.Subject[int64]{Name: "counter", New: func(clock *clocktest.Virtual) (gt.Process[int64], error) {
		c.streams = map[int]int{}
		call := func(ids []int64, note func()) (int, error) {
			clock.Now()
			c.mu.Lock()
			defer c.mu.Unlock()
			note()
			for i := range ids {
				c.last++
				ids[i] = c.last
			}
			return len(ids), nil
		}
		one := func(note func()) (int64, error) {
			ids := make([]int64, 1)
			_, err := call(ids, note)
			return ids[0], err
		}
		p := gt.Process[int64]{
			Next:  func() (int64, error) { return one(func() {}) },
			NextN: func(ids []int64) (int, error) { return call(ids, func() { c.batches = append(c.batches, len(ids)) }) },
			Stream: func() func() (int64, error) {
				n := len(c.streams)
				c.streams[n] = 0
				return func() (int64, error) { return one(func() { c.streams[n]++ }) }
			},
		}
		change(&p)
		return p, nil
	}}
}

func asIs(*gt.Process[int64]) {}

// Several callers use all that the process has, and ask for as many IDs as the
// script says.
func TestCallersUseAllCalls(t *testing.T) {
	c := &counter{}
	r := gt.RunScript(c.subject(asIs), parse("callers 4; ids 500; ids 500; ids 400 over 1s"))
	assert.Empty(t, lines(r))
	assert.Equal(t, 1400+4, r.Issued)
	assert.EqualValues(t, 1400+4, c.last, "and no more")
	assert.Greater(t, len(c.batches), 50)
	assert.LessOrEqual(t, slices.Max(c.batches), 3)
	assert.Contains(t, c.batches, 3)
	assert.Len(t, c.streams, 4, "each caller has one, and keeps it")
	used := map[int]bool{}
	for range 20 { // the scheduler may leave a caller out of one run
		c = &counter{}
		gt.RunScript(c.subject(asIs), parse("callers 4; ids 500"))
		for n, calls := range c.streams {
			used[n] = used[n] || calls > 0
		}
	}
	assert.Equal(t, map[int]bool{0: true, 1: true, 2: true, 3: true}, used)
	c = &counter{}
	gt.RunScript(c.subject(asIs), parse("callers 4; ids 500; stream 3; stream 3"))
	assert.Len(t, c.streams, 4+1, "that of single calls is another")

	r = gt.RunScript((&counter{}).subject(func(p *gt.Process[int64]) { p.NextN, p.Stream = nil, nil }), parse("callers 4; ids 500"))
	assert.Empty(t, lines(r))
	assert.Equal(t, 500+4, r.Issued, "by Next alone")

	// Each process has a stream of its own for single calls.
	streams := 0
	for script, want := range map[string]int{"stream 2; stream 1; ids 1; stream 1": 1, "stream 1; crash; stream 1; restart; stream 1": 3, "stream 1; takeover 1s; stream 1": 2} {
		streams = 0
		gt.RunScript((&counter{}).subject(func(p *gt.Process[int64]) {
			next := p.Next
			p.Stream = func() func() (int64, error) { streams++; return next }
			p.Restart = func() (gt.Process[int64], error) { return *p, nil }
		}), parse(script))
		assert.Equal(t, want, streams, script)
	}
}

// What batches and streams return among others is judged.
func TestCallersAreJudgedInAllCalls(t *testing.T) {
	fill := func(fill func(ids []int64) int) func(*gt.Process[int64]) {
		return func(p *gt.Process[int64]) {
			batch := p.NextN
			p.NextN = func(ids []int64) (int, error) { _, err := batch(ids); return fill(ids), err }
		}
	}
	for name, c := range map[string]struct {
		change func(*gt.Process[int64])
		want   gt.Kind
		least  int
	}{
		"batches that descend":      {fill(func(ids []int64) int { slices.Reverse(ids); return len(ids) }), gt.Disorder, 50},
		"batches that are not full": {fill(func(ids []int64) int { return len(ids) - 1 }), gt.WrongError, 50},
		"streams of which each begins far ahead": {func(p *gt.Process[int64]) {
			start := p.Stream
			p.Stream = func() func() (int64, error) {
				next, ahead := start(), int64(1_000_000)
				return func() (int64, error) { id, err := next(); id += ahead; ahead = 0; return id, err }
			}
		}, gt.Disorder, 1},
		"streams below all": {func(p *gt.Process[int64]) {
			start := p.Stream
			p.Stream = func() func() (int64, error) {
				next := start()
				return func() (int64, error) { id, err := next(); return id - 1_000_000, err }
			}
		}, "", 0},
	} {
		r := gt.RunScript((&counter{}).subject(c.change), parse("callers 3; ids 600"))
		assert.GreaterOrEqual(t, r.Violated[c.want], c.least, name)
		assert.Equal(t, c.want != "", r.Failed(), name)
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
		"a leap second":        {claim(wait(forever), wait(0)), "callers 3; leap; ids 20", 4},
		"the clock is behind":  {claim(wait(forever), wait(0)), "callers 3; step -1h; ids 20", 3},
	} {
		s := taped(c.claim)
		s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
			return gt.Process[tid]{
				Next:   func() (tid, error) { return 0, errNo },
				Stream: func() func() (tid, error) { return func() (tid, error) { return 0, errNo } },
			}, nil
		}
		r := gt.RunScript(s, parse(c.script))
		assert.Equal(t, c.want, r.Violated[gt.Rejected], name)
		assert.Len(t, r.Violated, 2, "and that it does not recover")
	}
	s := taped(claim(wait(forever), wait(0)))
	s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
		tp := &tape{clock: clock}
		var mu sync.Mutex
		return gt.Process[tid]{
			Next:  func() (tid, error) { mu.Lock(); defer mu.Unlock(); return tp.Next() },
			NextN: func([]tid) (int, error) { return 0, errNo },
		}, nil
	}
	assert.Empty(t, lines(gt.RunScript(s, parse("callers 3; ids 12; pass 1ms; ids 12"))), "a batch among others may fail as a whole")
}

// A call may end after a leap second that another's wait led over.
func TestCallersOverALeapSecond(t *testing.T) {
	for script, leads := range map[string]int{"callers 2; pass 998ms; leap; ids 1": 0, "callers 2; pass 998ms; step -1s; ids 1": 1} {
		s := taped(claim(wait(forever), wait(0)))
		s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
			return gt.Process[tid]{Next: func() (tid, error) { return after(2*ms, is(at(998, 0)))(&tape{clock: clock}) }}, nil
		}
		assert.Equal(t, leads, gt.RunScript(s, parse(script)).Violated[gt.Lead], script)
	}
}

// A process must not return nil for a stream.
func TestNoStream(t *testing.T) {
	for _, script := range []string{"ids 1; stream 2; ids 5", "callers 3; ids 1; ids 5"} {
		closed := false
		s := (&counter{}).subject(func(p *gt.Process[int64]) {
			p.Stream = func() func() (int64, error) { return nil }
			p.Close = func() error { closed = true; return nil }
		})
		r := gt.RunScript(s, parse(script))
		assert.Equal(t, map[gt.Kind]int{gt.NoStart: 1}, r.Violated, script)
		assert.Contains(t, lines(r)[0], "no-start: Stream returned nil (step ")
		assert.LessOrEqual(t, r.Issued, 1, "the script ends there")
		assert.True(t, closed)
	}
}
