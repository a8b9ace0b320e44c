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

func TestResultCounts(t *testing.T) {
	s := taped(gt.Claim{Exhausted: wait(ms), Behind: borrow(time.Hour), Unordered: true},
		is(at(0, 3)), is(at(0, 2)), is(at(0, 2)), after(ms, is(at(1, 0))), is(at(9, 0)), no, no)
	r := gt.RunScript(s, parse("ids 7"))
	assert.Equal(t, 5+4, r.Issued, "with those after the script")
	assert.Equal(t, 2, r.Errors)
	assert.Equal(t, 1, r.Duplicates)
	assert.Equal(t, 2, r.Disorder)
	assert.Equal(t, ms, r.LongestStall)
	assert.Equal(t, 8*ms, r.LargestLead)
	assert.Equal(t, "script", r.Name)
	assert.Equal(t, "ids 7", r.Script)
	assert.Equal(t, map[gt.Kind]int{gt.Duplicate: 1, gt.Lead: 1, gt.Rejected: 2}, r.Violated)

	r = gt.RunScript(taped(gt.Claim{}, is(at(5, 0)), after(9*ms, is(at(4, 0)))), parse("pass 5ms; ids 1; pass 1s; batch 1"))
	assert.Equal(t, 1, r.Disorder, "by its sequence and by its tick, but it is one ID")
	assert.Equal(t, 9*ms, r.LongestStall, "of a batch")
}

func TestViolationsAreCountedBeyondTheFirst(t *testing.T) {
	s := taped(gt.Claim{Unordered: true}, no, no, no, no, no, no, no, no, no, no, no, no)
	r := gt.RunScript(s, parse("ids 12"))
	assert.Len(t, r.Violations, gt.MaxViolations)
	assert.Equal(t, 12, r.Violated[gt.Rejected])
}

// life is a Subject whose processes do as the test says.
type life struct {
	next, closing, starting func() error
	starts, closes          int
}

func (l *life) subject() gt.Subject[tid] {
	s := taped(gt.Claim{Unordered: true, Exhausted: borrow(forever), Behind: borrow(forever)})
	s.Time = nil
	s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) { return l.process(&tape{clock: clock}) }
	return s
}

func (l *life) process(tp *tape) (gt.Process[tid], error) {
	l.starts++
	if l.starting != nil {
		if err := l.starting(); err != nil {
			return gt.Process[tid]{}, err
		}
	}
	p := gt.Process[tid]{
		Next: tp.Next,
		Close: func() error {
			l.closes++
			if l.closing != nil {
				return l.closing()
			}
			return nil
		},
		Restart: func() (gt.Process[tid], error) { return l.process(tp) },
	}
	if l.next != nil {
		p.Next = func() (tid, error) {
			if err := l.next(); err != nil {
				return 0, err
			}
			return tp.Next()
		}
	}
	return p, nil
}

func TestLife(t *testing.T) {
	l := &life{}
	assert.True(t, gt.RunScript(l.subject(), parse("ids 1; restart; ids 1; crash; ids 1; restart")).OK())
	assert.Equal(t, 4, l.starts)
	assert.Equal(t, 3, l.closes, "a crash closes nothing, and the last is closed at the end")

	second := func() func() error {
		n := 0
		return func() error {
			if n++; n == 2 {
				return errNo
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		life   life
		script string
		want   []string
		closes int
	}{
		{"new fails", life{starting: func() error { return errNo }}, "ids 1", []string{"no-start: at 2026-06-01T12:00:00.000000Z: no (step 0, call 0, 0s in)"}, 0},
		{"restart fails", life{starting: second()}, "ids 1; step -1s; restart; ids 5", []string{"no-start: restart at 2026-06-01T11:59:59.000000Z: no (step 3, call 1, 0s in)"}, 1},
		{"crash fails", life{starting: second()}, "pass 1s; crash; ids 5", []string{"no-start: restart at 2026-06-01T12:00:01.000000Z: no (step 2, call 0, 1s in)"}, 1},
		{"takeover fails", life{starting: second()}, "takeover 1s; ids 5", []string{"no-start: restart at 2026-06-01T12:00:01.000000Z: no (step 1, call 0, 1s in)"}, 1},
		{"close fails", life{closing: func() error { return errNo }}, "ids 1; restart; ids 5", []string{"no-start: close: no (step 2, call 1, 0s in)"}, 1},
		{"close fails at the end", life{closing: func() error { return errNo }}, "ids 1", []string{"no-start: close: no (step 2, call 5, 1m5s in)"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := gt.RunScript(c.life.subject(), parse(c.script))
			assert.Equal(t, c.want, lines(r))
			assert.Equal(t, c.closes, c.life.closes)
		})
	}
}

// A takeover stops a call at its first reading of the clock, the next at its second, and so on;
// a call that reads it less often is not stopped. A crash ends one there, and closes nothing.
func TestCallsAreHeldAtReadings(t *testing.T) {
	for script, want := range map[string][]int{
		"takeover 1s; takeover 1s; takeover 1s; takeover 1s": {1, 2, 1},
		"crash at read 1": {-1}, "crash at read 2": {-2}, "crash at read 3": nil,
	} {
		var held []int // at which reading; less than 0: it did not go on
		l := &life{}
		s := l.subject()
		start := s.New
		s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
			l.next = func() error {
				for i := range 2 {
					before, on := clock.Passed(), false
					func() {
						defer func() {
							if !on {
								held = append(held, -i-1)
							}
						}()
						clock.Now()
						on = true
					}()
					if clock.Passed() > before {
						held = append(held, i+1)
					}
				}
				return nil
			}
			return start(clock)
		}
		assert.True(t, gt.RunScript(s, parse(script)).OK(), script)
		assert.Equal(t, want, held, script)
		assert.Equal(t, 1, l.closes, script)
	}
}

// After the last step, all faults end, and the clock runs on from where it is. It
// ticks in microseconds.
func TestCalm(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"slew 0.5 for 1000h": time.Second, "freeze 2s": time.Second, "coarse 1m; pass 1500ns": time.Second + time.Microsecond,
		"leap": 0, "coarse 0s; pass 1500ns": time.Second + time.Microsecond, "pass 1500ns": time.Second + time.Microsecond,
		"coarse 0s; pass 1500ns; ids 1": time.Microsecond, "pass 1500ns; ids 1": time.Microsecond,
	} {
		var first time.Duration
		s := taped(gt.Claim{}, func(t *tape) (tid, error) { first = t.clock.Wall().Sub(noon); return good(t) })
		gt.RunScript(s, parse(script))
		assert.Equal(t, want, first, script)
	}
}

// Each process has a stream of its own, and one only.
func TestStreams(t *testing.T) {
	streams := 0
	s := taped(gt.Claim{})
	s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
		tp := &tape{clock: clock}
		p := tp.process()
		p.Stream = func() func() (tid, error) { streams++; return tp.Next }
		p.Restart = func() (gt.Process[tid], error) { return p, nil }
		return p, nil
	}
	for script, want := range map[string]int{
		"ids 1": 0, "stream 2; stream 1; ids 1; stream 1": 1, "stream 1; crash; stream 1; restart; stream 1": 3, "stream 1; takeover 1s; stream 1": 2,
	} {
		streams = 0
		assert.Empty(t, gt.RunScript(s, parse(script)).Skipped)
		assert.Equal(t, want, streams, script)
	}
}

func TestNoNext(t *testing.T) {
	s := gt.Subject[int]{New: func(*clocktest.Virtual) (gt.Process[int], error) { return gt.Process[int]{}, nil }}
	assert.Equal(t, []string{"no-start: the process has no Next (step 0, call 0, 0s in)"}, lines(gt.RunScript(s, parse("ids 1"))))
	s.New = func(*clocktest.Virtual) (gt.Process[int], error) {
		return gt.Process[int]{
			Next:    func() (int, error) { return 0, errNo },
			Restart: func() (gt.Process[int], error) { return gt.Process[int]{}, nil },
		}, nil
	}
	assert.Contains(t, lines(gt.RunScript(s, parse("crash"))), "no-start: restart at 2026-06-01T12:00:00.000000Z: the process has no Next (step 1, call 0, 0s in)")
}

// A generator may refuse a clock that is out of its time, and no other.
func TestNewMayRefuse(t *testing.T) {
	for begin, excused := range map[string]bool{
		"begin 1970-01-01T00:00:00Z": true, "begin end+0s": true, "begin end+1h": true,
		"begin end-1us": false, "begin 2020-01-01T00:00:00Z": false, "clock raw": false,
	} {
		l := &life{starting: func() error { return errNo }}
		s := l.subject()
		s.Epoch, s.End = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), noon.Add(time.Hour)
		r := gt.RunScript(s, parse(begin+"; ids 1"))
		assert.Equal(t, excused, !r.Failed(), begin)
		assert.Empty(t, r.Skipped)
	}
}

func TestNothingToStart(t *testing.T) {
	r := gt.RunScript(gt.Subject[int64]{}, parse("ids 1"))
	assert.Equal(t, []string{"no-start: the Subject has no New (step 0, call 0, 0s in)"}, lines(r))
}

func TestSkips(t *testing.T) {
	s := taped(gt.Claim{})
	s.New = func(clock *clocktest.Virtual) (gt.Process[tid], error) {
		return gt.Process[tid]{Next: (&tape{clock: clock}).Next, Close: func() error { return errNo }}, nil
	}
	const keeps = "it keeps no state across a restart (Process.Restart)"
	check := func(text, want string) {
		t.Helper()
		r := gt.RunScript(s, parse(text))
		assert.Equal(t, want, r.Skipped, text)
		assert.False(t, r.OK())
		assert.False(t, r.Failed())
		assert.Zero(t, r.Issued)
	}
	for _, text := range []string{"restart", "crash", "takeover 1s"} {
		check("ids 1; "+text, keeps)
	}
	check("begin end-5ms; ids 1", "it does not say when its time ends (Subject.End)")
	check("begin 1989-12-31T00:00:00Z; ids 1", "it does not say when its time begins (Subject.Epoch)")
	s.Epoch = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	check("begin 1970-01-01T00:00:00Z; ids 1", "its time begins earlier")
	const years = ", but clocks show 1678-01-01T00:00:00.000000Z to 2262-01-01T00:00:00.000000Z only"
	check("begin 2150-01-01T00:00:00Z; step +490905h; ids 1", "it begins at 2150-01-01T00:00:00.000000Z and goes 490905h0m0s from there"+years)
	s.End = time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	check("begin end-5ms; ids 1", "it begins at 2399-12-31T23:59:59.995000Z and goes 0s from there"+years)
	s.End = time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)
	check("begin end-5ms; pass 200000h; ids 1", "it begins at 1699-12-31T23:59:59.995000Z and goes 200000h0m0s from there"+years)

	r := gt.Run(s, gt.Scenario{Fault: "F0", Name: "mine", Script: parse("crash")})
	assert.Equal(t, gt.Report{Subject: "tape", Results: []gt.Result{{Fault: "F0", Name: "mine", Script: "crash", Skipped: keeps}}}, r)
	t.Run("as a test", func(t *testing.T) {
		t.Cleanup(func() { assert.True(t, t.Skipped()) })
		gt.TestScript(t, s, parse("crash"))
		t.Fatal("it was not skipped")
	})
}

// A call that never ends is ended, wherever it is made, and nothing waits for it.
func TestSpinner(t *testing.T) {
	const spins = "a call read the clock 4194304 times and did not end: it spins, or waits in steps too small for so long a time"
	type spot struct{ new, next, stream, restart, close bool }
	for i, c := range []struct {
		name, script string
		at           spot
		step         int
	}{
		{"in a call", "ids 5", spot{next: true}, 1},
		{"in a batch", "pass 1s; batch 3", spot{next: true}, 2},
		{"in a stream", "stream 3", spot{stream: true}, 1},
		{"in several calls", "callers 2; ids 100; ids 5", spot{next: true}, 1},
		{"in New", "ids 5", spot{new: true}, 0},
		{"in Restart", "ids 5; crash; ids 5", spot{restart: true}, 2},
		{"in a takeover", "takeover 1s; ids 4", spot{next: true}, 1},
		{"in Close", "ids 5", spot{close: true}, 2},
	} {
		locks := []string{"no lock", "a lock", "a lock that is freed"}
		if c.name != "in several calls" { // four million readings take long: each spot, and each lock, but not all pairs
			locks = locks[i%len(locks):][:1]
		}
		for _, lock := range locks {
			t.Run(c.name+" with "+lock, func(t *testing.T) {
				t.Parallel()
				var clock *clocktest.Virtual
				spin := func(mu *sync.Mutex, really bool) (int64, error) {
					switch lock {
					case "a lock":
						mu.Lock()
					case "a lock that is freed":
						mu.Lock()
						defer mu.Unlock()
					}
					for began := clock.Now(); really && !clock.Now().After(began); {
					}
					if lock == "a lock" {
						mu.Unlock()
					}
					return 0, errNo
				}
				var process func() (gt.Process[int64], error)
				process = func() (gt.Process[int64], error) {
					mu := new(sync.Mutex) // its own: one that is held in a takeover must not be needed by the next process
					_, _ = spin(mu, c.at.new)
					return gt.Process[int64]{
						Next:   func() (int64, error) { return spin(mu, c.at.next) },
						Stream: func() func() (int64, error) { return func() (int64, error) { return spin(mu, c.at.stream) } },
						Restart: func() (gt.Process[int64], error) {
							_, _ = spin(new(sync.Mutex), c.at.restart)
							return process()
						},
						Close: func() error { _, _ = spin(mu, c.at.close); return nil },
					}, nil
				}
				s := gt.Subject[int64]{Name: "spinner", New: func(c *clocktest.Virtual) (gt.Process[int64], error) {
					clock = c
					return process()
				}}
				r := gt.RunScript(s, parse(c.script))
				require.Equal(t, 1, r.Violated[gt.Stall], lines(r))
				for _, v := range r.Violations {
					if v.Kind == gt.Stall {
						assert.Equal(t, spins, v.Detail)
						assert.Equal(t, c.step, v.Step)
					}
				}
				assert.Zero(t, r.Violated[gt.NoStart])
				assert.Empty(t, r.Skipped)
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
	assert.Equal(t, 2*time.Second+ms, r.LongestStall)
}

// A call that ends its goroutine, as a failed test does, is no success.
func TestCallsThatDoNotReturn(t *testing.T) {
	for _, script := range []string{"ids 9", "callers 4; ids 9", "takeover 1s", "pass 1s; takeover 1s; ids 4", "crash at read 9; ids 4"} {
		for _, reads := range []bool{false, true} {
			for _, lock := range []bool{false, true} {
				l := &life{}
				var mu sync.Mutex
				var clock *clocktest.Virtual
				l.next = func() error {
					if lock {
						mu.Lock() // for good
					}
					if reads {
						clock.Now()
					}
					runtime.Goexit()
					return nil
				}
				s := l.subject()
				start := s.New
				s.New = func(c *clocktest.Virtual) (gt.Process[tid], error) { clock = c; return start(c) }
				if reads && lock { // the process that takes over would wait for the lock
					script = "ids 9"
				}
				r := gt.RunScript(s, parse(script))
				assert.Equal(t, map[gt.Kind]int{gt.WrongError: 1}, r.Violated, script)
				assert.Contains(t, lines(r)[0], "wrong-error: a call did not return: it ended its goroutine")
				assert.Zero(t, l.closes)
			}
		}
	}
	s := gt.Subject[int]{New: func(*clocktest.Virtual) (gt.Process[int], error) { runtime.Goexit(); panic("not reached") }}
	assert.Len(t, lines(gt.RunScript(s, parse("ids 1"))), 1, "nor in New")
}

// Calls are spread evenly, and take the whole time.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		script string
		want   []time.Duration
	}{
		{"ids 3 over 10s", []time.Duration{0, 3333333333, 6666666666}},
		{"ids 3 over 2ns", []time.Duration{0, 0, 0}},
		{"callers 2; ids 3 over 10s", []time.Duration{0, 3333333333, 6666666666}},
		{"callers 2; ids 4 over 876600h", []time.Duration{0, gt.MaxTime / 4, gt.MaxTime / 2, gt.MaxTime / 4 * 3}},
	} {
		var mu sync.Mutex
		var got []time.Duration
		s := gt.Subject[int]{New: func(clock *clocktest.Virtual) (gt.Process[int], error) {
			return gt.Process[int]{Next: func() (int, error) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, clock.Passed())
				return len(got), nil
			}}, nil
		}}
		script := parse(c.script)
		r := gt.RunScript(s, script)
		assert.Empty(t, lines(r))
		n := len(c.want)
		require.Len(t, got, n+4, "four more to see whether it recovers")
		assert.Equal(t, c.want, got[:n], c.script)
		assert.Equal(t, script.Steps[0].Time+time.Second, got[n], "a second after all faults")
		assert.Equal(t, 2*script.Steps[0].Time+time.Second+time.Second+time.Minute, got[n+1])
		assert.Equal(t, got[n+1]+time.Second, got[n+2])
		assert.Equal(t, got[n+2]+time.Second, got[n+3])
	}
}

// One that refuses to start has done nothing, which the report says.
func TestRefusalIsNoted(t *testing.T) {
	l := &life{starting: func() error { return errNo }}
	s := l.subject()
	s.Name, s.Epoch = "late", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	report := gt.Run(s, gt.Scenario{Fault: "F18", Name: "early", Script: parse("begin 1970-06-15T12:00:00Z; ids 50")})
	assert.Equal(t, "it refused to start, as it may: no", report.Results[0].Note)
	assert.Equal(t, `   fault      IDs  errors  duplicates  disorder  stall  lead
✓  F18 early  0    0       0           0         0s     0s  it refused to start, as it may: no
`, report.String())
}

// A script that says nothing of its begin begins as all do, and a generator that
// refuses that, since its epoch is yet to come, cannot be looked at.
func TestNoExcuseForAllScripts(t *testing.T) {
	l := &life{starting: func() error { return errNo }}
	s := l.subject()
	s.Epoch = noon.Add(time.Hour)
	assert.Equal(t, map[gt.Kind]int{gt.NoStart: 1}, gt.RunScript(s, parse("ids 1")).Violated)
	assert.Empty(t, gt.RunScript(s, parse("begin 2026-06-01T12:00:00Z; ids 1")).Violated)
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
