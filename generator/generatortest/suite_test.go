package generatortest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestCatalogue(t *testing.T) {
	names, faults := map[string]bool{}, map[string]bool{}
	for _, s := range gt.Catalogue() {
		assert.False(t, names[s.Name] || faults[s.Fault], s.Name)
		names[s.Name], faults[s.Fault] = true, true
		assert.NotEmpty(t, s.What)
	}
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18} {
		assert.True(t, faults[fmt.Sprintf("F%d", n)], n)
	}

	assert.Len(t, gt.Run((&tape{}).loose()), len(gt.Catalogue()))
}

// locked is the naive generator for several callers.
var locked = gt.Subject[int64]{Name: "naive", New: func(clock *clocktest.Virtual) (gt.Process[int64], error) {
	var mu sync.Mutex
	next := naive(clock.Now)
	return gt.Process[int64]{Next: func() (int64, error) { mu.Lock(); defer mu.Unlock(); return next() }}, nil
}}

// failing are tests that fail, in a process of their own.
var failing = map[string]func(t *testing.T){
	"Test":     func(t *testing.T) { gt.Test(t, locked) },
	"TestFunc": func(t *testing.T) { gt.TestFunc(t, naive) },
	"no now": func(t *testing.T) {
		gt.TestFunc(t, func(func() time.Time) func() (int64, error) {
			var last time.Time
			return func() (int64, error) {
				for !time.Now().After(last) { // in a bubble, for good
				}
				last = time.Now()
				return last.UnixNano(), nil
			}
		})
	},
	"no end": func(t *testing.T) {
		gt.TestFunc(t, func(now func() time.Time) func() (int64, error) {
			return func() (int64, error) { now(); runtime.Goexit(); return 0, nil }
		})
	},
}

func fails(t *testing.T, test string, flags ...string) string {
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(flags, "-test.run=^TestFailingTestPrints$")...)
	cmd.Env = append(os.Environ(), "FAIL="+test)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	return string(out)
}

// A failing test has a line for each fault, which repeats it, and for the faults that do not apply.
func TestFailingTestPrints(t *testing.T) {
	if test := failing[os.Getenv("FAIL")]; test != nil {
		test(t)
		return
	}
	for _, flag := range []string{"-test.v=false", "-test.v"} {
		text := fails(t, "Test", flag)
		assert.Contains(t, text, "skipped F11 F12 F13 F22: it keeps no state across a restart (Process.Restart). If it keeps none, a fresh one takes its place:\n        \tprocess.Restart = func() (generatortest.Process[int64], error) {\n")
		one := regexp.MustCompile(`duplicate: (\d+), first in step 1, call 1, 0s in; again in .*; script: ids 1; step -.*; in all: 36 duplicate, 110 disorder; repeat it: go test -v -run '\^TestFailingTestPrints\$/\^F1-step-back-small\$' github.com/tickflake/tickflake/generator/generatortest\n`)
		assert.Regexp(t, one, text)
		assert.Equal(t, flag == "-test.v", strings.Contains(text, "in all: 36 duplicate, 110 disorder\n        the least script that fails so has:\n"), text)
	}
}

// A generator that only reads the time meets the faults of its clock and the restarts, and may wait by reading
// on or by sleeping.
func TestFunc(t *testing.T) {
	text := fails(t, "TestFunc", "-test.v=false")
	assert.Regexp(t, `duplicate: \d+, first in step 1, call 1, 0s in; again in .*; script: ids 1; step -.*; repeat it: .*/\^F1-`, text)
	assert.Regexp(t, `duplicate: \d+, first by process 0 in .*; again by process 1 in .*; script: .*(restart|crash); .*in all: .*/\^F11-`, text)
	assert.Regexp(t, `duplicate: \d+, first by process 0 in .*; again by process 1 in .*; script: ids 1; crash; ids 1; in all: .*/\^F12-`, text)
	assert.Contains(t, fails(t, "no now"), "the first call has not read the time by now")
	assert.Contains(t, fails(t, "no end"), "wrong-error: a call did not return", "and no panic of the first call")

	for name, wait := range map[string]func(now func() time.Time, d time.Duration){
		"reading": func(now func() time.Time, d time.Duration) {
			for end := now().Add(d); now().Before(end); {
			}
		},
		"sleeping": func(_ func() time.Time, d time.Duration) { time.Sleep(d) },
	} {
		t.Run(name, func(t *testing.T) {
			var last atomic.Int64 // what it keeps across a restart
			gt.TestFunc(t, func(now func() time.Time) func() (int64, error) {
				return func() (int64, error) {
					for {
						was, is := last.Load(), now()
						if next := max(was+1, is.UnixMilli()<<12); next>>12 > is.UnixMilli() {
							wait(now, time.UnixMilli(next>>12).Sub(is))
						} else if last.CompareAndSwap(was, next) {
							return next, nil
						}
					}
				}
			})
		})
	}
}

// The least script that fails has no step, no ID and no time too many.
func TestShrink(t *testing.T) {
	s := locked
	for script, want := range map[string]string{
		"pass 1s; batch 100; stream 5; freeze 1ms; pass 2s; step -2h; ids 50; pass 3h; ids 4; step -7ms; ids 100 over 10ms; ids 1": "ids 1; step -1µs; ids 2 over 1ms",
		"ids 1; pass 1ms; freeze 2s; ids 9000":     "pass 1ms; ids 4097",
		"batch 1; step -1s; ids 2 over 2s":         "ids 1; step -1s; ids 1",
		"callers 2; pass 1ms; freeze 2s; ids 9000": "", // it fails by chance
		"ids 1; pass 1s; ids 1":                    "",
	} {
		r := gt.Shrink(s, gt.RunScript(s, parse(script)))
		if want == "" {
			assert.Nil(t, r.Least, script)
			continue
		}
		require.NotNil(t, r.Least, script)
		assert.Equal(t, want, r.Least.Script)
		assert.Equal(t, r.Least.Violations, gt.RunScript(s, parse(want)).Violations)
		assert.Contains(t, r.Lines(), "script: "+want)
		assert.Equal(t, gt.Duplicate, r.Worst().Kind)
	}
}

func TestResultTells(t *testing.T) {
	s := taped(gt.Claim{Exhausted: wait(ms)}, is(at(0, 1)), is(at(0, 0)), is(at(0, 0)), is(at(0, 0)), is(at(0, 0)), after(ms, is(at(9, 0))), no)
	r := gt.RunScript(s, parse("ids 6; pass 10ms; ids 1"))
	assert.Equal(t, []any{10, 1, 3, 4, gt.Seconds(ms), gt.Seconds(8 * ms)}, []any{r.Issued, r.Errors, r.Duplicates, r.Disorder, r.LongestStall, r.LargestLead})
	assert.Equal(t, `in all: 3 duplicate, 4 disorder, 1 lead, 1 rejected
duplicate: 0.0, first in step 1, call 2, 0s in; again in step 1, call 3, 0s in
duplicate: 0.0, first in step 1, call 3, 0s in; again in step 1, call 4, 0s in
duplicate: 0.0, first in step 1, call 4, 0s in; again in step 1, call 5, 0s in
disorder: 0.0 is not above 0.1, which had been returned before the call began (step 1, call 2, 0s in)
disorder: 0.0 is not above 0.1, which had been returned before the call began (step 1, call 3, 0s in)
disorder: 0.0 is not above 0.1, which had been returned before the call began (step 1, call 4, 0s in)
lead: 9.0 is 8ms ahead of the clock; at most 0s, since its tick was free (step 1, call 6, 1ms in)
rejected: the call failed though its tick was free: no (step 3, call 7, 11ms in)
script: ids 6; pass 10ms; ids 1`, strings.Join(r.Lines(), "\n"))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var again gt.Result
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, r, again)
	assert.Contains(t, string(text), `{"kind":"duplicate","id":"0.0","process":0,"step":1,"call":3,"at_seconds":0,"first":{"id":"0.0",`)
}

func TestTickflake(t *testing.T) {
	small := snowflake.Default()
	small.SequenceBits = 4
	// By default; in other units; of a time that is over; of fewer bits.
	for i, want := range []snowflake.Layout{small, snowflake.Sonyflake(), snowflake.Baidu(), snowflake.JavaScript()} {
		t.Run(want.String(), func(t *testing.T) {
			s := gt.Tickflake(strategies.Reject(), gt.Raw, []generator.Option{generator.WithLayout(want)}[:min(i, 1)]...)
			assert.Equal(t, []any{want.Tick, want.Epoch, want.End()}, []any{s.Tick, s.Epoch, s.End})
			clock := clocktest.NewVirtual(want.Epoch.Add(time.Hour))
			p, err := s.New(clock)
			require.NoError(t, err)
			id, err := p.Next()
			require.NoError(t, err)
			d, err := want.Decode(id)
			require.NoError(t, err)
			assert.Equal(t, d.Time, s.Time(id))
			assert.Equal(t, int64(7), d.Node)
			require.NoError(t, p.Close())
			_, err = p.Next()
			assert.ErrorIs(t, err, generator.ErrClosed)
			r := gt.RunScript(s, parse("begin end-1s; ids 5; pass 2s; ids 1"))
			assert.Empty(t, lines(r))
			assert.Equal(t, 5, r.Issued)
		})
	}
	r := gt.RunScript(gt.Tickflake(strategies.Reject(), gt.Raw, generator.WithNode(-1)), parse("ids 1"))
	require.Len(t, r.Violations, 1)
	assert.Equal(t, gt.NoStart, r.Violations[0].Kind)
	assert.Contains(t, r.Violations[0].Detail, "WithNode: ")
	assert.Equal(t, gt.Claim{Exhausted: wait(time.Second), Behind: borrow(time.Minute)},
		gt.Tickflake(strategies.PerCause(strategies.WaitUpTo(time.Second), strategies.BorrowUpTo(time.Minute)), gt.Raw).Claim)
}

// The clocks differ in what a step back, a step ahead and a suspend do to their readings.
func TestClockKinds(t *testing.T) {
	for kind, want := range map[gt.ClockKind][3]time.Duration{
		gt.Raw: {-time.Minute, time.Minute, time.Hour}, gt.Mono: {0, 0, time.Hour}, gt.Resync: {0, time.Minute, time.Hour},
	} {
		var got [3]time.Duration
		for i, fault := range []func(*clocktest.Virtual){
			func(c *clocktest.Virtual) { c.Step(-time.Minute) },
			func(c *clocktest.Virtual) { c.Step(time.Minute) },
			func(c *clocktest.Virtual) { c.Suspend(time.Hour) },
		} {
			clock := clocktest.NewVirtual(noon)
			read := kind.Of(clock)
			fault(clock)
			clock.Advance(time.Minute)
			read.Now() // a monoclock resyncs when it is read
			got[i] = read.Now().Sub(noon) - time.Minute
		}
		assert.Equal(t, want, got, kind)
		again, err := gt.ParseClockKind(string(kind))
		require.NoError(t, err)
		assert.Equal(t, kind, again)
	}
}

func TestTickflakeErrors(t *testing.T) {
	check := gt.Tickflake(strategies.Default(), gt.Raw).CheckError
	right := &generator.LeadError{Cause: strategies.Behind, Lead: ms}
	assert.NoError(t, check(lease.ErrEndOfTime))
	assert.NoError(t, check(fmt.Errorf("x: %w", right)))
	for _, wrong := range []error{errNo, &generator.LeadError{Cause: strategies.Behind}, &generator.LeadError{Cause: 99, Lead: ms}, mute{right}} {
		assert.ErrorContains(t, check(wrong), "one cause")
	}
}

// mute is an error that hides its text.
type mute struct{ error }

func (mute) Error() string   { return "lead" }
func (m mute) Unwrap() error { return m.error }
