package generatortest

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// Run puts a generator through the scenarios, or the whole [Catalogue] if none are
// given, and returns their results.
func Run[ID cmp.Ordered](s Subject[ID], scenarios ...Scenario) (results []Result) {
	if len(scenarios) == 0 {
		scenarios = Catalogue()
	}
	for _, scenario := range scenarios {
		results = append(results, scenario.result(RunScript(s, scenario.Script)))
	}
	return results
}

func (s Scenario) result(r Result) Result {
	r.Fault, r.Name = s.Fault, s.Name
	return r
}

// Test puts a generator through the [Catalogue], each scenario as a subtest, and fails
// where the generator does not keep its claim:
//
//	go test -run 'TestMyGenerator/F5'
//
// A fault that fails prints one line: the worst violation, the least script that has it, the
// counts, and the command that repeats it and shows the others. A failing test also names the faults that do not
// apply.
func Test[ID cmp.Ordered](t *testing.T, s Subject[ID]) { testAll(t, s, false) }

func testAll[ID cmp.Ordered](t *testing.T, s Subject[ID], sleeps bool) {
	skipped := map[string]string{} // the faults by reason
	for _, scenario := range Catalogue() {
		t.Run(scenario.Fault+"-"+scenario.Name, func(t *testing.T) {
			r := scenario.result(test(t, s, scenario.Script, sleeps))
			if r.Skipped != "" {
				skipped[r.Skipped] += " " + scenario.Fault
			}
			r.tell(t)
		})
	}
	for why, faults := range skipped {
		if why == noRestart {
			why += fmt.Sprintf(joins, *new(ID))
		}
		t.Logf("skipped%s: %s", faults, why)
	}
}

// joins tells a generator without state how to take part.
const joins = `. If it keeps none, a fresh one takes its place:
	process.Restart = func() (generatortest.Process[%T], error) {
		return start(clock) // what New does
	}`

// TestFunc puts a generator that reads the time through the [Catalogue] as [Test] does. It is a call that returns
// one ID; the function makes a new one that reads the time by now instead of time.Now:
//
//	generatortest.TestFunc(t, func(now func() time.Time) func() (int64, error) {
//		return mine.New(now).Next
//	})
//
// What is judged is that no ID comes twice, also not after a restart, where the function makes another generator,
// and that calls are served when the faults are over. A call may fail, and may wait for as long as it likes: by
// reading now again and again, or by time.Sleep. There is one call at a time, except that a takeover (F13) starts
// another generator while a call of the first is stopped. The generator must start no goroutine, and spin only if it
// reads now. One whose first call has not read now fails at once.
//
// It is for a generator that keeps nothing. One with a file or a row passes by mistake, since the function cannot tell
// a restart from a new script: give it to [Test], with a [Process] that has a Restart.
func TestFunc[ID cmp.Ordered](t *testing.T, start func(now func() time.Time) func() (ID, error)) {
	t.Helper()
	read := false
	synctest.Test(t, func(*testing.T) {
		go func() { // it may spin, which ends its goroutine
			now := newReader(newWorld(noon).clock).now
			_, _ = start(func() time.Time { read = true; return now() })()
		}()
	})
	if !read {
		t.Fatal("the first call has not read the time by now: a generator that calls time.Now itself cannot be given a wrong clock")
	}
	anything := Bound{Wait: Forever, Borrow: Forever}
	testAll(t, Subject[ID]{
		Name:  t.Name(),
		Claim: Claim{Exhausted: anything, Behind: anything, Unordered: true},
		New: func(clock *clocktest.Virtual) (Process[ID], error) {
			now := newReader(clock).now
			return Process[ID]{Next: start(now), Restart: func() (Process[ID], error) { return Process[ID]{Next: start(now)}, nil }}, nil
		},
	}, true)
}

// TestScript runs one script as a test.
func TestScript[ID cmp.Ordered](t *testing.T, s Subject[ID], script Script) {
	t.Helper()
	test(t, s, script, false).tell(t)
}

// test runs a script, and looks for the least that fails so. A generator that sleeps by package time runs in a
// bubble, whose time passes only when all its goroutines wait, and a wait for a mutex does not count: of several
// callers, one may sleep while it holds a mutex, and the others would block forever. So there is one.
func test[ID cmp.Ordered](t *testing.T, s Subject[ID], script Script, sleeps bool) (r Result) {
	run := func(*testing.T) { r = Shrink(s, RunScript(s, script)) }
	if !sleeps {
		run(t)
		return r
	}
	script.Callers = 0
	synctest.Test(t, run)
	return r
}

// tell has a test end as the result says.
func (r Result) tell(t *testing.T) {
	t.Helper()
	if r.Skipped != "" {
		t.Skip("does not apply: " + r.Skipped)
	}
	if !r.Failed() {
		return
	}
	lines := r.Lines()
	pkg := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = " " + strings.TrimSuffix(info.Path, ".test")
	}
	t.Errorf("%s; %s; %s; repeat it: go test -v -run '^%s$'%s", r.Worst(), lines[len(lines)-1], lines[0], strings.ReplaceAll(t.Name(), "/", "$/^"), pkg)
	if testing.Verbose() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// RunScript puts a generator through one script. A script that is not valid is reported
// as one that does not apply, with the reason.
//
// With one caller the same script has the same result every time. With several, the Go
// scheduler interleaves them.
func RunScript[ID cmp.Ordered](s Subject[ID], script Script) Result {
	r := Result{Name: "script", Script: script.Line()}
	if r.Skipped = s.unfit(script); r.Skipped != "" {
		return r
	}
	begin, _ := script.begin(s.End) // unfit has looked at it
	w := newWorld(begin)
	m := machine[ID]{
		judge: judge[ID]{subject: &s, result: &r, warped: script.has(Slew, Freeze, Coarse, Leap),
			last: map[ID]int{}, world: w},
		line: &line[ID]{}, world: w, script: script,
	}
	// In a goroutine of its own, because a call that spins ends its goroutine.
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.run()
	}()
	<-done
	return r
}

// unfit returns why a script cannot be run on the subject, or "".
func (s *Subject[ID]) unfit(script Script) string {
	named := script
	named.Strategy = "" // it may be a word of the Subject's own
	if _, err := ParseScript(named.String()); err != nil {
		return err.Error()
	}
	begin, _ := script.begin(s.End) // ParseScript has looked at it
	reach := script.reach()
	switch {
	case script.Callers > 1 && script.has(Leap):
		return "several callers are not judged over a leap second"
	case script.Begin != "" && script.Begin[0] == 'e' && s.End.IsZero():
		return "it does not say when its time ends (Subject.End)"
	case begin.Add(-reach).Before(firstWall) || begin.Add(2*reach).After(lastWall): // the time after the last step is as long again
		return fmt.Sprintf("it begins at %s and goes %s from there, but clocks show %s to %s only", show(begin), reach, show(firstWall), show(lastWall))
	case begin.Year() < 1990 && s.Epoch.IsZero():
		return "it does not say when its time begins (Subject.Epoch)"
	case begin.Year() < 1990 && !begin.Before(s.Epoch):
		return "its time begins earlier"
	}
	return ""
}

// The range of a wall, and a little less: a clocktest.Virtual stands still outside it.
var (
	firstWall = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	lastWall  = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)
