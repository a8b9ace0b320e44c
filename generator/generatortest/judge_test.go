package generatortest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// Each row is a generator that breaks one promise, or that just does not: what it
// does is right at the bound, or one unit beyond.
func TestJudge(t *testing.T) {
	type subject = generatortest.Subject[tid]
	for _, c := range []struct {
		name   string
		script string
		claim  generatortest.Claim
		tape   []answer
		with   func(*subject)
		want   string // the violations
	}{
		// Duplicates and order.
		{name: "good", script: "ids 40; pass 5ms; ids 3; batch 5; stream 5; ids 1", claim: claim(borrow(10*ms), borrow(10*ms))},
		{name: "duplicate", script: "ids 2; pass 1ms; ids 2", claim: generatortest.Claim{Unordered: true}, tape: []answer{is(at(0, 0)), is(at(0, 1)), is(at(1, 0)), is(at(1, 0))}, want: `
duplicate: 1.0, first in step 3, call 3, 1ms in; again in step 3, call 4, 1ms in`},
		{name: "duplicate after a batch and an error", script: "ids 1; batch 3; pass 1ms; ids 2; batch 2", claim: generatortest.Claim{Unordered: true}, tape: []answer{is(at(0, 0)), is(at(0, 1)), is(at(0, 3)), is(at(0, 2)), is(at(1, 1)), no, is(at(1, 0)), is(at(1, 1))}, with: func(s *subject) { s.Time = nil }, want: `
duplicate: 1.1, first in step 4, call 3, 1ms in; again in step 5, call 5, 1ms in`},
		{name: "duplicate of a call that a crash does not stop", script: "ids 1; crash at read 1", tape: []answer{is(at(0, 0)), is(at(0, 0))}, want: `
duplicate: 0.0, first in step 1, call 1, 0s in; again in step 2, call 2, 0s in`},
		{name: "batch below what was before", script: "ids 1; batch 2", tape: []answer{is(at(0, 4)), is(at(0, 1)), is(at(0, 2))}, want: `
disorder: 0.1 is not above 0.4, which had been returned before the call began (step 2, call 2, 0s in)`},
		{name: "call below a batch", script: "batch 2; ids 1", tape: []answer{is(at(0, 4)), is(at(0, 5)), is(at(0, 5))}, want: `
duplicate: 0.5, first in step 1, call 1, 0s in; again in step 2, call 2, 0s in
disorder: 0.5 is not above 0.5, which had been returned before the call began (step 2, call 2, 0s in)`},
		{name: "stream among others in one tick", script: "ids 1; stream 2; ids 1; stream 1", tape: []answer{is(at(0, 5)), is(at(0, 1)), is(at(0, 9)), is(at(0, 6)), is(at(0, 10))}},
		{name: "stream out of order", script: "stream 1; ids 1; stream 1", tape: []answer{is(at(0, 5)), is(at(0, 6)), is(at(0, 4))}, want: `
disorder: 0.4 is not above 0.5, which the stream had returned (step 3, call 3, 0s in)`},
		{name: "stream of an earlier tick", script: "pass 2ms; ids 1; stream 1", claim: claim(borrow(0), borrow(0)), tape: []answer{is(at(2, 0)), is(at(1, 15))}, with: func(s *subject) { s.Tick = 2 * ms }, want: `
disorder: 1.15 is of 2026-06-01T12:00:00.001000Z, an earlier tick than one that had been returned before the call began: 2026-06-01T12:00:00.002000Z (step 3, call 2, 2ms in)`},
		{name: "the first after a restart stands for all", script: "pass 5ms; ids 2; crash; ids 2", claim: claim(borrow(2*ms), borrow(2*ms)), tape: []answer{is(at(5, 0)), is(at(7, 0)), is(at(5, 1)), is(at(5, 2))}, want: `
disorder: 5.1 is not above 7.0, which had been returned before the call began (step 4, call 3, 5ms in)`},
		{name: "the first tick after a restart stands for all", script: "pass 5ms; stream 1; crash; stream 2", claim: claim(borrow(2*ms), borrow(2*ms)), tape: []answer{is(at(7, 0)), is(at(5, 0)), is(at(5, 1))}, want: `
disorder: 5.0 is of 2026-06-01T12:00:00.005000Z, an earlier tick than one that had been returned before the call began: 2026-06-01T12:00:00.007000Z (step 4, call 2, 5ms in)`},

		// Stalls.
		{name: "exhausted, wait as claimed", script: "ids 2", claim: claim(wait(ms), wait(9*ms)), tape: []answer{is(at(0, 0)), after(ms, is(at(1, 0)))}},
		{name: "exhausted, wait for too long", script: "ids 2", claim: claim(wait(ms), wait(9*ms)), tape: []answer{is(at(0, 0)), after(ms+1, is(at(1, 0)))}, want: `
stall: the call took 1.000001ms; at most 1ms, as claimed for a tick that is used up (step 1, call 2, 1.000001ms in)`},
		{name: "exhausted in a frozen clock, wait for too long", script: "ids 1; freeze 5ms; ids 1", claim: claim(wait(ms), wait(6*ms)), tape: []answer{is(at(0, 0)), after(6*ms+1, is(at(1, 0)))}, want: `
stall: the call took 6.000001ms; at most 6ms, as claimed (step 3, call 2, 6.000001ms in)`},
		{name: "exhausted before a leap second, the bounds add up", script: "pass 999ms; ids 1; leap; ids 1", claim: claim(wait(ms), wait(2*time.Second)), tape: []answer{is(at(999, 0)), after(1001*ms, is(at(1000, 0)))}},
		{name: "behind, waits though none is claimed", script: "pass 5ms; ids 1; step -2ms; ids 1", claim: claim(wait(9*ms), wait(0)), tape: []answer{is(at(5, 0)), after(3*ms, is(at(6, 0)))}, want: `
stall: the call took 3ms; at most 0s, since the clock was at least 2ms behind, further than a wait may help (step 4, call 2, 8ms in)`},
		{name: "behind by more than a wait may help", script: "pass 9ms; ids 1; step -5001us; ids 1", claim: claim(wait(0), wait(5*ms)), tape: []answer{is(at(9, 0)), after(5*ms, no)}, want: `
stall: the call took 5ms; at most 0s, since the clock was at least 5.001ms behind, further than a wait may help (step 4, call 2, 14ms in)`},
		{name: "behind by what a loan may help", script: "pass 9ms; ids 1; step -7ms; ids 1", claim: claim(wait(0), generatortest.Bound{Wait: 5 * ms, Borrow: 7 * ms}), tape: []answer{is(at(9, 0)), after(5*ms, is(at(9, 1)))}},
		{name: "wait after a restart", script: "ids 1; crash; pass 1ms; ids 1; pass 9ms; ids 1", claim: claim(wait(ms), wait(5*ms)), tape: []answer{is(at(0, 0)), after(5*ms, is(at(6, 0))), after(1, is(at(15, 0)))}, want: `
stall: the call took 1ns; at most 0s, since its tick was free (step 6, call 3, 15.000001ms in)`},
		{name: "wait at the end of time", script: "begin end+0s; ids 1", claim: claim(wait(5*ms), wait(5*ms)), tape: []answer{after(5*ms, no), no, no}, with: func(s *subject) { s.End = noon }},
		{name: "wait before the end of time", script: "begin end-1us; ids 1", claim: claim(wait(5*ms), wait(5*ms)), tape: []answer{after(5*ms, no), no, no}, with: func(s *subject) { s.End = noon.Add(ms) }, want: `
stall: the call took 5ms; at most 0s, since its tick was free (step 1, call 1, 5ms in)`},

		// Leads.
		{name: "exhausted, ahead by more", script: "ids 2", claim: claim(borrow(3*ms), borrow(9*ms)), tape: []answer{is(at(0, 0)), is(at(4, 0))}, want: `
lead: 4.0 is 4ms ahead of the clock; at most 3ms, as claimed for a tick that is used up (step 1, call 2, 0s in)`},
		{name: "behind, ahead by more", script: "pass 5ms; ids 1; step -3ms; ids 1", claim: claim(borrow(9*ms), borrow(2*ms)), tape: []answer{is(at(5, 0)), is(at(5, 1))}, want: `
lead: 5.1 is 3ms ahead of the clock; at most 2ms, as claimed for a clock that is behind (step 4, call 2, 5ms in)`},
		{name: "batch ahead for either cause", script: "batch 2", claim: claim(borrow(ms), borrow(3*ms)), tape: []answer{is(at(3, 0)), is(at(4, 0))}, want: `
lead: 4.0 is 4ms ahead of the clock; at most 3ms, as claimed (step 1, call 1, 0s in)`},
		{name: "ahead in a frozen clock for either cause", script: "freeze 2s; ids 2", claim: claim(borrow(ms), borrow(3*ms)), tape: []answer{is(at(3, 0)), is(at(4, 0))}, want: `
lead: 4.0 is 4ms ahead of the clock; at most 3ms, as claimed (step 2, call 2, 0s in)`},
		{name: "ahead after a restart for either cause", script: "ids 1; crash; ids 1; crash; ids 1", claim: claim(borrow(ms), borrow(3*ms)), tape: []answer{is(at(0, 0)), is(at(3, 0)), is(at(4, 0))}, want: `
lead: 4.0 is 4ms ahead of the clock; at most 3ms, as claimed (step 5, call 3, 0s in)`},
		{name: "lead in the year 9999", script: "ids 1", claim: claim(borrow(ms), borrow(ms)), tape: []answer{is(at(0, 1))}, with: func(s *subject) { s.Time = func(tid) time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) } }, want: `
lead: 0.1 is 2562047h47m16.854775807s ahead of the clock; at most 0s, since its tick was free (step 1, call 1, 0s in)
lead: 1000.0 is 2562047h47m16.854775807s ahead of the clock; at most 1ms, as claimed for a clock that is behind (the calls after the script, call 2, 1s in)
lead: 3155760002000.0 is 2562047h47m16.854775807s ahead of the clock; at most 1ms, as claimed for a clock that is behind (the calls after the script, call 3, 876600h0m2s in)`},
		{name: "Time without Tick", script: "ids 2", claim: claim(wait(ms), wait(0)), tape: []answer{is(at(0, 0)), after(ms, is(at(1, 0)))}, with: func(s *subject) { s.Tick = 0 }},
		{name: "Next refuses before the epoch", script: "begin 2020-01-01T00:00:00Z; ids 2", tape: []answer{no, no, no}, with: func(s *subject) { s.Epoch = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{name: "batch over a leap second", script: "pass 998ms; leap; batch 2", claim: claim(wait(10*ms), wait(10*ms)), tape: []answer{after(ms, is(at(999, 0))), after(ms, is(at(1000, 0)))}},
		{name: "call over a leap second", script: "pass 998ms; leap; ids 1", claim: claim(wait(10*ms), wait(10*ms)), tape: []answer{after(2*ms, is(at(1000, 0)))}, want: `
stall: the call took 2ms; at most 0s, since its tick was free (step 3, call 1, 1s in)
lead: 1000.0 is 1s ahead of the clock; at most 0s, as claimed (step 3, call 1, 1s in)`},

		// Stale IDs.
		{name: "of a tick that was over", script: "pass 1ms; ids 1", tape: []answer{is(at(0, 0))}, want: `
stale: 0.0 is of 2026-06-01T12:00:00.000000Z, but the call began at 2026-06-01T12:00:00.001000Z (step 2, call 1, 1ms in)`},
		{name: "without Time", script: "pass 1ms; ids 3", tape: []answer{is(at(0, 0)), is(at(77, 0)), no}, with: func(s *subject) { s.Time = nil }},

		// Rejections.
		{name: "exhausted, has waited", script: "coarse 1ms; ids 2", claim: claim(wait(1200*time.Microsecond), wait(0)), tape: []answer{is(at(0, 0)), after(300*time.Microsecond, no)}},
		{name: "exhausted, has waited and could have waited more", script: "coarse 1ms; ids 2", claim: claim(wait(1300*time.Microsecond), wait(0)), tape: []answer{is(at(0, 0)), after(300*time.Microsecond, no)}, want: `
rejected: the call failed though its slot was at most 1ms ahead, and a generator that waits up to 1.3ms serves it: no (step 2, call 2, 300µs in)`},
		{name: "behind, should wait", script: "pass 5ms; ids 1; step -2ms; ids 1", claim: claim(wait(0), wait(3*ms)), tape: []answer{is(at(5, 0)), no}, want: `
rejected: the call failed though its slot was at most 3ms ahead, and a generator that waits up to 3ms serves it: no (step 4, call 2, 5ms in)`},
		{name: "behind, should borrow", script: "pass 5ms; ids 1; step -2ms; ids 1", claim: claim(wait(0), borrow(3*ms)), tape: []answer{is(at(5, 0)), no}, want: `
rejected: the call failed though its slot was at most 3ms ahead, and a generator that borrows up to 3ms serves it: no (step 4, call 2, 5ms in)`},
		{name: "batch may fail in part", script: "batch 2", tape: []answer{is(at(0, 0)), no}},
		{name: "batch may fail where its tick is used up", script: "ids 1; batch 2", claim: claim(wait(9*ms), wait(9*ms)), tape: []answer{is(at(0, 0)), no}},
		{name: "batch fails as a whole though its tick was free", script: "ids 1; pass 1ms; batch 2", tape: []answer{is(at(0, 0)), no}, want: `
rejected: the call failed though its tick was free: no (step 3, call 2, 1ms in)`},
		{name: "a process that has just started may fail", script: "ids 1; pass 1ms; crash; ids 2", tape: []answer{is(at(0, 0)), no, no}},
		{name: "rejected in the last tick", script: "begin end-1ms; ids 2", claim: claim(wait(9*ms), wait(9*ms)), tape: []answer{is(at(0, 0)), no, no}, with: func(s *subject) { s.End = noon.Add(ms) }},
		{name: "rejected before the last tick", script: "begin end-2ms; ids 2", claim: claim(wait(9*ms), wait(9*ms)), tape: []answer{is(at(0, 0)), no, no}, with: func(s *subject) { s.End = noon.Add(2 * ms) }, want: `
rejected: the call failed though its slot was at most 1ms ahead, and a generator that waits up to 9ms serves it: no (step 1, call 2, 0s in)`},
		{name: "rejected at the end", script: "begin end+0s; ids 1", tape: []answer{no, no}, with: func(s *subject) { s.End = noon }},

		// Errors.
		{name: "right error", script: "ids 2", tape: []answer{is(at(0, 0)), no}, with: func(s *subject) {
			s.CheckError = func(err error) error {
				if err != errNo {
					return errBad
				}
				return nil
			}
		}},
		{name: "batch not full", script: "batch 2", tape: []answer{is(at(0, 0)), short}, want: `
wrong-error: a batch of 2 filled 1, with the error <nil> (step 1, call 1, 0s in)`},
		{name: "batch empty", script: "batch 2", tape: []answer{short}, want: `
wrong-error: the call returned neither an ID nor an error (step 1, call 1, 0s in)`},
		{name: "batch of fewer than none", script: "batch 2", with: func(s *subject) { batches(s, -1, nil) }, want: `
wrong-error: the call returned neither an ID nor an error (step 1, call 1, 0s in)
wrong-error: a batch of 2 filled -1, with the error <nil> (step 1, call 1, 0s in)`},
		{name: "batch of too many", script: "batch 2", with: func(s *subject) { batches(s, 3, nil) }, want: `
wrong-error: a batch of 2 filled 3, with the error <nil> (step 1, call 1, 0s in)`},

		// The end of time.
		{name: "ID for the end", script: "begin end-1us; ids 2", claim: claim(borrow(ms), wait(0)), tape: []answer{is(at(1, 0)), is(at(2, 0)), no}, with: func(s *subject) { s.End = noon.Add(2 * ms) }, want: `
end-of-time: 2.0 is of 2026-06-01T12:00:00.002000Z, but time ends at 2026-06-01T12:00:00.002000Z (step 1, call 2, 0s in)`},
		{name: "ID at the end", script: "begin end+0s; ids 1", claim: claim(wait(0), wait(0)), tape: []answer{is(at(1, 0)), no}, with: func(s *subject) { s.End = noon.Add(2 * ms); s.Tick = 0 }, want: `
end-of-time: 1.0 was issued at 2026-06-01T12:00:00.002000Z, but time ends at 2026-06-01T12:00:00.002000Z (step 1, call 1, 0s in)`},
		{name: "ID before the epoch", script: "step -1us; ids 1", claim: claim(wait(0), borrow(ms)), tape: []answer{is(at(0, 0))}, with: func(s *subject) { s.Epoch = noon }, want: `
end-of-time: 0.0 was issued at 2026-06-01T11:59:59.999999Z, but time begins at 2026-06-01T12:00:00.000000Z (step 2, call 1, 0s in)`},
		{name: "waits for the epoch", script: "step -1ms; ids 1", claim: claim(wait(0), wait(ms)), tape: []answer{after(ms, is(at(0, 0)))}, with: func(s *subject) { s.Epoch = noon }},

		// Recovery.
		{name: "does not recover", script: "ids 1", claim: claim(wait(0), wait(0)), tape: []answer{is(at(0, 0)), good, no, good, no}, want: `
rejected: the call failed though its tick was free: no (the calls after the script, call 3, 2s in)
rejected: the call failed though its tick was free: no (the calls after the script, call 5, 4s in)
no-recovery: all faults had been over for 1s, and the call failed (the calls after the script, call 3, 2s in)
no-recovery: all faults had been over for 1s, and the call failed (the calls after the script, call 5, 4s in)`},
		{name: "need not recover in the last tick", script: "ids 1", tape: []answer{is(at(0, 0)), good, no}, with: func(s *subject) { s.End = noon.Add(2001 * ms) }},
		{name: "recovers when the clock is back at the start", script: "step -1h", tape: []answer{no, from(0), from(0)}},
		{name: "recovers when the hours of its starts are over", script: "ids 1; crash; restart; crash", tape: []answer{good, no, from(2 * time.Hour)}},
		{name: "recovers slowly", script: "ids 1", claim: claim(wait(0), wait(0)), tape: []answer{is(at(0, 0)), good, after(1, good)}, want: `
stall: the call took 1ns; at most 0s, since its tick was free (the calls after the script, call 3, 2.000000001s in)
no-recovery: all faults had been over for 1s, and the call took 1ns (the calls after the script, call 3, 2.000000001s in)`},
		{name: "recovers after its lead", script: "pass 1h; ids 1; step -1h", tape: []answer{is(at(3600_000, 0)), no}},

		// The wall jumps in the middle of a call: it is not held to what depends on the clock at
		// its begin and at its end, and is to all else. The next call is held to all.
		{name: "stream ahead, and then the next", script: "step -2ms at read 1; stream 2", tape: []answer{looks(1, is(at(0, 0))), is(at(0, 1))}, want: `
lead: 0.1 is 2ms ahead of the clock; at most 0s, as claimed (step 2, call 2, 0s in)`},
		{name: "free, and then behind", script: "ids 1; pass 1ms; step -2ms at read 1; ids 1", claim: claim(wait(0), wait(5*ms)), tape: []answer{is(at(0, 0)), looks(1, after(2*ms, is(at(1, 0))))}},
		{name: "back from the end", script: "begin end+1ms; step -2ms at read 1; ids 1", tape: []answer{looks(1, is(at(-2, 0))), no}, with: func(s *subject) { s.End = noon.Add(-ms) }},
		{name: "past the epoch and back", script: "begin 2026-06-01T12:00:00Z; step +1h at read 1; step -1h at read 2; ids 1", tape: []answer{looks(2, is(at(3600_000, 0))), no}, with: func(s *subject) { s.Epoch = noon.Add(time.Minute) }},
		{name: "wrong error", script: "ids 1; step +5ms at read 1; ids 1", tape: []answer{is(at(0, 0)), looks(1, no)}, with: func(s *subject) { s.CheckError = func(error) error { return errBad } }, want: `
wrong-error: bad: no (step 3, call 2, 0s in)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := taped(c.claim, c.tape...)
			if c.with != nil {
				c.with(&s)
			}
			r := generatortest.RunScript(s, parse(c.script))
			assert.Empty(t, r.Skipped)
			assert.Equal(t, strings.TrimPrefix(c.want, "\n"), strings.Join(lines(r), "\n"))
			assert.Equal(t, c.want != "", r.Failed())
		})
	}
}

// batches has batches fill so many, and fail so.
func batches(s *generatortest.Subject[tid], filled int, err error) {
	start := s.New
	s.New = func(clock *clocktest.Virtual) (generatortest.Process[tid], error) {
		p, _ := start(clock)
		p.NextN = func(ids []tid) (int, error) {
			ids[0], ids[1] = at(0, 0), at(0, 1)
			return filled, err
		}
		return p, nil
	}
}
