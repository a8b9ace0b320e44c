package generatortest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// looks reads the clock, at which a step of the wall may wait.
func looks(readings int, a answer) answer {
	return func(t *tape) (tid, error) {
		for range readings {
			t.clock.Now()
		}
		return a(t)
	}
}

// A step of the wall comes at the reading it is given, of those that the generator
// makes. The judge's own do not count, whichever clock it looks at.
func TestStepsAtReadings(t *testing.T) {
	for script, want := range map[string][]time.Duration{
		"step -2ms at read 1; ids 1":                                          {-2 * ms, -2 * ms},
		"step -2ms at read 2; ids 1":                                          {0, -2 * ms},
		"step -2ms at read 3; ids 2":                                          {0, 0, -2 * ms, -2 * ms},
		"ids 1; step -2ms at read 4; pass 1s; ids 2":                          {0, 0, time.Second, time.Second, time.Second, time.Second - 2*ms},
		"step -2ms at read 2; step +9ms at read 3; step -1ms at read 2;ids 2": {0, -3 * ms, 6 * ms, 6 * ms},
		"step -2ms at read 3; ids 1; crash; ids 1":                            {0, 0, -2 * ms, -2 * ms},
		"ids 1; step -2ms at read 3; ids 1":                                   {0, 0, 0, 0}, // the script ends before
	} {
		for _, own := range []bool{false, true} {
			var seen []time.Duration
			var process func(*clocktest.Virtual) gt.Process[int]
			process = func(clock *clocktest.Virtual) gt.Process[int] {
				p := gt.Process[int]{
					Next: func() (int, error) {
						seen = append(seen, clock.Now().Sub(noon), clock.Wall().Sub(noon))
						return len(seen), nil
					},
					Restart: func() (gt.Process[int], error) { return process(clock), nil },
				}
				if own {
					p.Now = clock.Now
				}
				return p
			}
			s := gt.Subject[int]{New: func(clock *clocktest.Virtual) (gt.Process[int], error) { return process(clock), nil }}
			r := gt.RunScript(s, parse(script))
			assert.Empty(t, lines(r), script)
			assert.Equal(t, want, seen[:len(want)], "%s, by its own clock: %t", script, own)
			last := want[len(want)-1]
			if script == "ids 1; step -2ms at read 3; ids 1" {
				assert.Equal(t, last+time.Second, seen[len(want)], "what waits is dropped when the faults end")
			}
		}
	}
}

// A call in the middle of which the wall jumped is not held to what depends on the
// clock at its begin and at its end, and is to all else. Those before and after are
// held to all.
func TestCallsThatJumped(t *testing.T) {
	type subject = gt.Subject[tid]
	for _, c := range []struct {
		name   string
		script string
		claim  gt.Claim
		tape   []answer
		with   func(*subject)
		want   []string
	}{
		{name: "ahead", script: "ids 1; step -2ms at read 1; ids 1", tape: []answer{is(at(0, 0)), looks(1, is(at(0, 1)))}},
		{name: "ahead, and then the next", script: "ids 1; step -2ms at read 1; ids 2", tape: []answer{is(at(0, 0)), looks(1, is(at(0, 1))), is(at(0, 2))}, want: []string{
			"lead: 0.2 is 2ms ahead of the clock; at most 0s, as claimed for a clock that is behind (step 3, call 3, 0s in)",
		}},
		{name: "ahead before it", script: "ids 1; step -2ms at read 1; ids 2", tape: []answer{is(at(0, 0)), is(at(1, 0)), looks(1, is(at(1, 1)))}, want: []string{
			"lead: 1.0 is 1ms ahead of the clock; at most 0s, as claimed for a tick that is used up (step 3, call 2, 0s in)",
		}},
		{name: "batch ahead", script: "step -2ms at read 1; batch 2", tape: []answer{looks(1, is(at(0, 0))), is(at(0, 1))}},
		{name: "batch not ahead", script: "step -2ms at read 1; batch 1; batch 1", tape: []answer{looks(1, is(at(0, 0))), is(at(0, 1))}, want: []string{
			"lead: 0.1 is 2ms ahead of the clock; at most 0s, as claimed (step 3, call 2, 0s in)",
		}},
		{name: "stream ahead", script: "step -2ms at read 1; stream 1", tape: []answer{looks(1, is(at(0, 0)))}},
		{name: "stream ahead, and then the next", script: "step -2ms at read 1; stream 2", tape: []answer{looks(1, is(at(0, 0))), is(at(0, 1))}, want: []string{
			"lead: 0.1 is 2ms ahead of the clock; at most 0s, as claimed (step 2, call 2, 0s in)",
		}},
		{name: "stale", script: "pass 5ms; step -3ms at read 1; ids 1", tape: []answer{looks(1, is(at(2, 0)))}},
		{name: "free, and then behind", script: "ids 1; pass 1ms; step -2ms at read 1; ids 1", claim: claim(wait(0), wait(5*ms)), tape: []answer{is(at(0, 0)), looks(1, after(2*ms, is(at(1, 0))))}},
		{name: "out of patience", script: "ids 1; pass 1ms; step -2ms at read 1; ids 1", claim: claim(wait(4*ms), wait(5*ms)), tape: []answer{is(at(0, 0)), looks(1, after(5*ms+1, is(at(4, 0))))}, want: []string{
			"stall: the call took 5.000001ms; at most 5ms, as claimed (step 4, call 2, 6.000001ms in)",
		}},
		{name: "rejected", script: "ids 1; step +5ms at read 1; ids 1", tape: []answer{is(at(0, 0)), looks(1, no)}},
		{name: "rejected, and then the next", script: "ids 1; step +5ms at read 1; ids 2", tape: []answer{is(at(0, 0)), looks(1, no), no}, want: []string{
			"rejected: the call failed though its tick was free: no (step 3, call 3, 0s in)",
		}},
		{name: "back from the end", script: "begin end+1ms; step -2ms at read 1; ids 1", tape: []answer{looks(1, is(at(-2, 0))), no}, with: func(s *subject) { s.End = noon.Add(-ms) }},
		{name: "past the epoch and back", script: "begin 2026-06-01T12:00:00Z; step +1h at read 1; step -1h at read 2; ids 1", tape: []answer{looks(2, is(at(3600_000, 0))), no}, with: func(s *subject) { s.Epoch = noon.Add(time.Minute) }},
		{name: "duplicate", script: "ids 1; step -2ms at read 1; ids 1", claim: gt.Claim{Unordered: true}, tape: []answer{is(at(0, 0)), looks(1, is(at(0, 0)))}, want: []string{
			"duplicate: 0.0 was issued before, in step 1, call 1, 0s in (step 3, call 2, 0s in)",
		}},
		{name: "disorder", script: "ids 1; step -2ms at read 1; ids 1", tape: []answer{is(at(0, 1)), looks(1, is(at(0, 0)))}, want: []string{
			"disorder: 0.0 is not above 0.1, which had been returned before the call began (step 3, call 2, 0s in)",
		}},
		{name: "wrong error", script: "ids 1; step +5ms at read 1; ids 1", tape: []answer{is(at(0, 0)), looks(1, no)}, with: func(s *subject) { s.CheckError = func(error) error { return errBad } }, want: []string{
			"wrong-error: bad: no (step 3, call 2, 0s in)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := taped(c.claim, c.tape...)
			if c.with != nil {
				c.with(&s)
			}
			r := gt.RunScript(s, parse(c.script))
			assert.Empty(t, r.Skipped)
			if c.want == nil {
				c.want = []string{}
			}
			assert.Equal(t, c.want, lines(r))
		})
	}
}

// Of several callers, none is held to it whose call may have met a jump, or an ID
// from before it. That is over when all have returned.
func TestCallersThatJumped(t *testing.T) {
	subject := func(fails, jumps bool) gt.Subject[tid] {
		s := taped(claim(wait(forever), wait(0)))
		s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
			var mu sync.Mutex
			tp, before := &tape{clock: clock}, clock.Now()
			return gt.Process[tid]{Next: func() (tid, error) {
				mu.Lock()
				defer mu.Unlock()
				// No call returns before the jump. A reading that falls together with one
				// of the judge's does not count.
				for clock.Now().Equal(before) && jumps {
				}
				if fails {
					return no(tp)
				}
				return is(max(tp.last+1, at(500, 0)))(tp) // ahead of the clock
			}}, nil
		}
		return s
	}
	all := gt.RunScript(subject(false, false), parse("callers 4; ids 50"))
	assert.Equal(t, 50, all.Violated[gt.Lead])
	r := gt.RunScript(subject(false, true), parse("callers 4; step -1ms at read 1; ids 50"))
	assert.Zero(t, r.Violated[gt.Lead])
	r = gt.RunScript(subject(false, true), parse("callers 4; step -1ms at read 1; ids 50; ids 30"))
	assert.Equal(t, 30, r.Violated[gt.Lead])

	failing := gt.RunScript(subject(true, false), parse("callers 4; ids 50"))
	assert.Equal(t, 50+4, failing.Violated[gt.Rejected])
	r = gt.RunScript(subject(true, true), parse("callers 4; step -1ms at read 1; ids 50"))
	assert.Equal(t, 4, r.Violated[gt.Rejected])
}
