package generatortest_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func TestLife(t *testing.T) {
	fail := func(*tape) error { return errNo }
	second := func(t *tape) error {
		if t.starts == 2 {
			return errNo
		}
		return nil
	}
	const early = "no-start: at 2026-06-01T12:00:00.000000Z: no (step 0, call 0, 0s in)"
	for name, c := range map[string]struct {
		tape   *tape
		script string
		want   string // the first violation
		starts int
		closes int
	}{
		"a crash closes nothing":  {&tape{}, "ids 1; restart; ids 1; crash; ids 1; restart", "", 4, 3},
		"new fails":               {&tape{starting: fail}, "ids 1", early, 1, 0},
		"restart fails":           {&tape{starting: second}, "ids 1; step -1s; restart; ids 5", "no-start: restart at 2026-06-01T11:59:59.000000Z: no (step 3, call 1, 0s in)", 2, 1},
		"crash fails":             {&tape{starting: second}, "pass 1s; crash; ids 5", "no-start: restart at 2026-06-01T12:00:01.000000Z: no (step 2, call 0, 1s in)", 2, 1},
		"takeover fails":          {&tape{starting: second}, "takeover 1s; ids 5", "no-start: restart at 2026-06-01T12:00:01.000000Z: no (step 1, call 0, 1s in)", 2, 1},
		"close fails":             {&tape{closing: fail}, "ids 1; restart; ids 5", "no-start: close: no (step 2, call 1, 0s in)", 1, 1},
		"close fails at the end":  {&tape{closing: fail}, "ids 1", "no-start: close: no (the calls after the script, call 5, 1m5s in)", 1, 1},
		"refuses before its time": {&tape{starting: fail}, "begin 1999-01-01T00:00:00Z; ids 1", "", 1, 0},
		"refuses after its time":  {&tape{starting: fail}, "begin end+0s; ids 1", "", 1, 0},
		"refuses the last moment": {&tape{starting: fail}, "begin end-1us; ids 1", "no-start: at 2026-06-01T12:59:59.999999Z: no (step 0, call 0, 0s in)", 1, 0},
		"refuses the first":       {&tape{starting: fail}, "begin 2020-01-01T00:00:00Z; ids 1", "no-start: at 2020-01-01T00:00:00.000000Z: no (step 0, call 0, 0s in)", 1, 0},
	} {
		s := c.tape.loose()
		s.Epoch, s.End = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), noon.Add(time.Hour)
		r := gt.RunScript(s, parse(c.script))
		assert.Equal(t, c.want, append(lines(r), "")[0], name)
		assert.Equal(t, c.starts, c.tape.starts, name)
		assert.Equal(t, c.closes, c.tape.closes, name)
		assert.Equal(t, c.tape.starting != nil && c.want == "", r.Note == "it refused to start, as it may: no", name)
	}
	// A script that says nothing of its begin begins as all do, and a generator whose epoch is yet to come
	// cannot be looked at.
	s := (&tape{starting: fail}).loose()
	s.Epoch = noon.Add(time.Hour)
	assert.Equal(t, []string{early}, lines(gt.RunScript(s, parse("ids 1"))))

	bare := gt.Subject[int]{}
	assert.Equal(t, []string{"no-start: the Subject has no New (step 0, call 0, 0s in)"}, lines(gt.RunScript(bare, parse("ids 1"))))
	bare.New = func(*clocktest.Virtual) (gt.Process[int], error) { return gt.Process[int]{}, nil }
	assert.Equal(t, []string{"no-start: the process has no Next (step 0, call 0, 0s in)"}, lines(gt.RunScript(bare, parse("ids 1"))))
}

// A takeover stops a call at its first reading of the clock, the next at its second, and so on;
// a call that reads it less often is not stopped. A crash ends one there, and closes nothing.
func TestCallsAreHeldAtReadings(t *testing.T) {
	for script, want := range map[string][]int{
		"takeover 1s; takeover 1s; takeover 1s; takeover 1s": {1, 2, 1},
		"crash at read 1": {-1}, "crash at read 2": {-2}, "crash at read 3": nil,
	} {
		var held []int // at which reading; less than 0: it did not go on
		l := &tape{then: func(t *tape) (tid, error) {
			began, reading := t.clock.Passed(), -1
			defer func() {
				if reading < 0 {
					held = append(held, reading)
				}
			}()
			for i := range 2 {
				reading = -i - 1
				t.clock.Now()
				if t.clock.Passed() > began {
					held = append(held, i+1)
					began = t.clock.Passed()
				}
			}
			reading = 0
			return good(t)
		}}
		assert.Empty(t, lines(gt.RunScript(l.loose(), parse(script))), script)
		assert.Equal(t, want, held, script)
		assert.Equal(t, 1, l.closes, script)
	}
}

// After the last step, all faults end, and the clock runs on from where it is. It
// ticks in microseconds.
func TestCalm(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"slew 0.5 for 1000h": time.Second, "freeze 2s": time.Second, "coarse 1m; pass 1500ns": time.Second + time.Microsecond,
		"leap": 0, "coarse 0s; pass 1500ns; ids 1": time.Microsecond, "pass 1500ns; ids 1": time.Microsecond,
	} {
		var first time.Duration
		s := taped(gt.Claim{}, func(t *tape) (tid, error) { first = t.clock.Wall().Sub(noon); return good(t) })
		gt.RunScript(s, parse(script))
		assert.Equal(t, want, first, script)
	}
}

func TestSkips(t *testing.T) {
	const keeps = "it keeps no state across a restart (Process.Restart)"
	const years = ", but clocks show 1678-01-01T00:00:00.000000Z to 2262-01-01T00:00:00.000000Z only"
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		script, want string
		epoch, end   time.Time
	}{
		{"ids 1; restart", keeps, time.Time{}, time.Time{}},
		{"ids 1; crash", keeps, time.Time{}, time.Time{}},
		{"ids 1; takeover 1s", keeps, time.Time{}, time.Time{}},
		{"callers 2; leap; ids 1", "several callers are not judged over a leap second", time.Time{}, time.Time{}},
		{"begin end-5ms; ids 1", "it does not say when its time ends (Subject.End)", time.Time{}, time.Time{}},
		{"begin 1989-12-31T00:00:00Z; ids 1", "it does not say when its time begins (Subject.Epoch)", time.Time{}, time.Time{}},
		{"begin 1970-01-01T00:00:00Z; ids 1", "its time begins earlier", year(1970), time.Time{}},
		{"begin 0001-01-01T00:00:00Z; ids 1", "it begins at 0001-01-01T00:00:00.000000Z and goes 0s from there" + years, year(-1), time.Time{}},
		{"begin 9999-01-01T00:00:00Z; ids 1", "it begins at 9999-01-01T00:00:00.000000Z and goes 0s from there" + years, time.Time{}, time.Time{}},
		{"begin 2150-01-01T00:00:00Z; step +490905h; ids 1", "it begins at 2150-01-01T00:00:00.000000Z and goes 490905h0m0s from there" + years, time.Time{}, time.Time{}},
		{"begin end-5ms; ids 1", "it begins at 2399-12-31T23:59:59.995000Z and goes 0s from there" + years, year(1970), year(2400)},
		{"begin end-5ms; pass 200000h; ids 1", "it begins at 1699-12-31T23:59:59.995000Z and goes 200000h0m0s from there" + years, time.Time{}, year(1700)},
	} {
		alone := func(p *gt.Process[tid]) { p.Restart = nil }
		s := (&tape{change: alone, closing: func(*tape) error { return errNo }}).subject(gt.Claim{})
		s.Epoch, s.End = c.epoch, c.end
		r := gt.Run(s, gt.Scenario{Fault: "F0", Name: "mine", Script: parse(c.script)})[0]
		assert.Equal(t, gt.Result{Fault: "F0", Name: "mine", Script: parse(c.script).Line(), Skipped: c.want}, r)
		assert.False(t, r.OK() || r.Failed())
	}
}

// A call that never ends is ended, wherever it is made, and nothing waits for the lock that it holds.
func TestSpinner(t *testing.T) {
	for _, c := range []struct {
		at, script string
		step       int
	}{
		{"Next", "ids 5", 1}, {"Next", "pass 1s; batch 3", 2}, {"Next", "callers 2; ids 100; ids 5", 1}, {"Next", "takeover 1s; ids 4", 1},
		{"Next", "stream 3", 1}, {"New", "ids 5", 0}, {"Restart", "ids 5; crash; ids 5", 2}, {"Close", "ids 5", gt.AfterScript},
	} {
		for _, frees := range []bool{false, true}[:1+len(c.script)/20] { // of several callers, each gets the lock
			t.Run(c.at+" in "+c.script, func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				spin := func(t *tape) error {
					if c.script[0] != 't' { // one that is held in a takeover must not be needed by the next process
						mu.Lock()
					}
					if frees {
						defer mu.Unlock()
					}
					for began := t.clock.Now(); !t.clock.Now().After(began); {
					}
					return errNo
				}
				tp := &tape{}
				switch c.at {
				case "Next":
					tp.then = func(t *tape) (tid, error) { return 0, spin(t) }
				case "Close":
					tp.closing = spin
				default:
					tp.starting = func(t *tape) error {
						if (t.starts == 1) == (c.at == "New") {
							return spin(t)
						}
						return nil
					}
				}
				r := gt.RunScript(tp.loose(), parse(c.script))
				assert.Equal(t, c.at == "Close", tp.closes == 1)
				require.Equal(t, 1, r.Violated[gt.Stall], lines(r))
				for _, v := range r.Violations {
					if v.Kind == gt.Stall {
						assert.Contains(t, v.Detail, "a call read the clock 4194304 times and did not end")
						assert.Equal(t, c.step, v.Step)
					}
				}
				assert.Zero(t, r.Violated[gt.NoStart])
			})
		}
	}
}

// A call may wait for as long as a clock can stand still, in steps of the clock's
// own resolution.
func TestPatience(t *testing.T) {
	s := taped(claim(wait(3*time.Second), wait(3*time.Second)), is(at(0, 0)), func(t *tape) (tid, error) {
		for t.clock.Now().Before(noon.Add(ms)) {
			t.clock.Sleep(time.Microsecond)
		}
		return good(t)
	})
	r := gt.RunScript(s, parse("ids 1; freeze 2s; ids 1"))
	assert.Empty(t, lines(r))
	assert.EqualValues(t, 2*time.Second+ms, r.LongestStall)
}

// A call that ends its goroutine, as a failed test does, is no success.
func TestCallsThatDoNotReturn(t *testing.T) {
	for script, reads := range map[string]bool{
		"ids 9": true, "callers 4; ids 9": true, "takeover 1s": false, "pass 1s; takeover 1s; ids 4": false, "crash at read 9; ids 4": false,
	} {
		var mu sync.Mutex
		l := &tape{then: func(t *tape) (tid, error) {
			mu.Lock() // for good
			if reads {
				t.clock.Now()
			}
			runtime.Goexit()
			return good(t)
		}}
		r := gt.RunScript(l.loose(), parse(script))
		assert.Equal(t, map[gt.Kind]int{gt.WrongError: 1}, r.Violated, script)
		assert.Contains(t, lines(r)[0], "wrong-error: a call did not return: it ended its goroutine")
		assert.Zero(t, l.closes)
	}
	l := &tape{starting: func(*tape) error { runtime.Goexit(); return nil }}
	assert.Len(t, lines(gt.RunScript(l.loose(), parse("ids 1"))), 1, "nor in New")
}

// Calls are spread evenly, and take the whole time; the last ones see whether it recovers.
func TestSpread(t *testing.T) {
	for text, want := range map[string][]time.Duration{
		"ids 3 over 10s":                {0, 3333333333, 6666666666},
		"ids 3 over 2ns":                {0, 0, 1},
		"callers 2; ids 3 over 10s":     {0, 3333333333, 6666666666},
		"callers 2; ids 4 over 876600h": {0, maxTime / 4, maxTime / 2, maxTime / 4 * 3},
	} {
		var mu sync.Mutex
		var got []time.Duration
		l := &tape{then: func(t *tape) (tid, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, t.clock.Passed())
			return good(t)
		}}
		script := parse(text)
		assert.Empty(t, lines(gt.RunScript(l.loose(), script)))
		took := script.Steps[0].Time
		calm := took + time.Second
		settled := calm + took + time.Second + time.Minute
		assert.Equal(t, append(want, calm, settled, settled+time.Second, settled+2*time.Second), got, text)
	}
}

// A step of the wall comes at the reading it is given, of those that the generator
// makes: three a call. The judge's own do not count.
func TestStepsAtReadings(t *testing.T) {
	for script, want := range map[string][]time.Duration{
		"step -2ms at read 1; ids 1":                                          {-2 * ms, -2 * ms},
		"step -2ms at read 2; ids 1":                                          {0, -2 * ms},
		"ids 1; step -2ms at read 5; pass 1s; ids 2":                          {0, 0, time.Second, time.Second, time.Second, time.Second - 2*ms},
		"step -2ms at read 2; step +9ms at read 4; step -1ms at read 2;ids 2": {0, -3 * ms, 6 * ms, 6 * ms},
		"step -2ms at read 4; ids 1; crash; ids 1":                            {0, 0, -2 * ms, -2 * ms},
		"ids 1; step -2ms at read 4; ids 1":                                   {0, 0, 0, 0, time.Second, time.Second}, // what waits is dropped when the faults end
	} {
		var seen []time.Duration
		l := &tape{then: func(t *tape) (tid, error) {
			seen = append(seen, t.clock.Now().Sub(noon), t.clock.Wall().Sub(noon))
			return good(t)
		}}
		l.change = func(p *gt.Process[tid]) { p.Now = l.clock.Now }
		s := l.loose()
		assert.Empty(t, lines(gt.RunScript(s, parse(script))), script)
		assert.Equal(t, want, seen[:len(want)], script)
	}
}
