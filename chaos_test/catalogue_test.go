package chaos_test

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/mutants"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Every fault is a test of its own, with a subtest for every strategy and in that
// for every clock: go test ./chaos_test -run 'F5/borrow/raw'.

func TestF1_StepBackSmall(t *testing.T)         { everyStrategy(t) }
func TestF2_StepBackLarge(t *testing.T)         { everyStrategy(t) }
func TestF3_StepForward(t *testing.T)           { everyStrategy(t) }
func TestF4_ForwardThenBack(t *testing.T)       { everyStrategy(t) }
func TestF5_RepeatedSteps(t *testing.T)         { everyStrategy(t) }
func TestF6_Slew(t *testing.T)                  { everyStrategy(t) }
func TestF7_Freeze(t *testing.T)                { everyStrategy(t) }
func TestF8_CoarseClock(t *testing.T)           { everyStrategy(t) }
func TestF9_Suspend(t *testing.T)               { everyStrategy(t) }
func TestF10_LeapSecond(t *testing.T)           { everyStrategy(t) }
func TestF11_RestartAfterStepBack(t *testing.T) { everyStrategy(t) }
func TestF12_CrashAfterBurst(t *testing.T)      { everyStrategy(t) }
func TestF13_PauseAndTakeover(t *testing.T)     { everyStrategy(t) }
func TestF16_Exhaustion(t *testing.T)           { everyStrategy(t) }
func TestF17_EndOfTime(t *testing.T)            { everyStrategy(t) }
func TestF18_BeforeEpoch(t *testing.T)          { everyStrategy(t) }
func TestF22_WrongAtStart(t *testing.T)         { everyStrategy(t) }

var faultOfTest = regexp.MustCompile(`^Test(F\d+)_`)

// everyStrategy runs the fault that the test is named after.
func everyStrategy(t *testing.T) {
	fault := faultOfTest.FindStringSubmatch(t.Name())[1]
	onEveryStrategy(t, scenarioOf(t, fault).Script)
}

// onEveryStrategy runs a script with every strategy. The script that a failure prints
// names its strategy and clock, so that `tickflake-chaos run --script` replays it.
//
// Where processes end, only a generator under a lease is safe, so there the generator
// has a lease, on every clock, and also with its cells in files. Elsewhere a lease must
// make no difference, and one clock is enough. With -short every script runs on one clock,
// without random starts.
func onEveryStrategy(t *testing.T, script generatortest.Script) {
	random := generator.WithSequenceStart(strategies.StartRandom(16))
	clocks := clocksOf(script)
	if testing.Short() {
		clocks = clocks[:1]
	}
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			subject := c.subject
			if endsProcesses(script) {
				subject = c.leased
				if !raceDetector || c.name == "default" {
					t.Run("directory", func(t *testing.T) {
						mustRun(t, c.leasedIn(t, generatortest.Raw), script)
					})
				}
			} else {
				t.Run("leased", func(t *testing.T) {
					mustRun(t, c.leased(generatortest.Raw), c.script(script, generatortest.Raw))
				})
			}
			for _, kind := range clocks {
				t.Run(string(kind), func(t *testing.T) {
					mustRun(t, subject(kind), c.script(script, kind))
				})
			}
			if len(clocks) == 1 {
				return
			}
			// Random starts change what a tick holds, and nothing else. The command line
			// knows none, so that the script names no strategy.
			t.Run("random-start", func(t *testing.T) {
				mustRun(t, subject(generatortest.Raw, random), script)
			})
		})
	}
}

// raceDetector says that calls take ten times as long.
var raceDetector = func() bool {
	built, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// clocksOf are the clocks to run a script on: all, or one if the race detector is on
// and there is one caller, because then no goroutines run at the same time.
func clocksOf(script generatortest.Script) []generatortest.ClockKind {
	if raceDetector && script.Callers <= 1 {
		return []generatortest.ClockKind{generatortest.Raw}
	}
	return generatortest.ClockKinds
}

// mustRun runs a script as a test, which must apply.
func mustRun(t *testing.T, s generatortest.Subject[snowflake.ID], script generatortest.Script) {
	t.Cleanup(func() { assert.False(t, t.Skipped(), "the fault does not apply") })
	generatortest.TestScript(t, s, script)
}

func endsProcesses(script generatortest.Script) bool {
	return slices.ContainsFunc(script.Steps, func(s generatortest.Step) bool {
		return s.Do == generatortest.Restart || s.Do == generatortest.Crash || s.Do == generatortest.Takeover
	})
}

// TestF5_AmongCallers steps the wall back in the middle of calls of several callers,
// each of which uses calls and batches in turn.
func TestF5_AmongCallers(t *testing.T) {
	script := amongCallers(t)
	onEveryStrategy(t, script)
	t.Run("control", func(t *testing.T) { generatortest.TestScript(t, broken(mutants.Control), script) })
}

func amongCallers(t *testing.T) generatortest.Script {
	text := "callers 8; ids 300 over 20ms; "
	for i := range 60 {
		text += fmt.Sprintf("step -%dms at read %d; ids %d; pass %dms; ", i%5+1, i*7%40+1, 20+i%30, i%4)
	}
	for _, far := range []string{"1s", "30s", "10m"} {
		text += fmt.Sprintf("pass 20m; ids 1200 over 12m; step -%s at read 9; ids 100 over 1m; step -%s at read 3; step +%s at read 20; ids 100 over 1m; ", far, far, far)
	}
	script, err := generatortest.ParseScript(text + "pass 20m; ids 50")
	require.NoError(t, err)
	return script
}

func scenarioOf(t *testing.T, fault string) generatortest.Scenario {
	for _, scenario := range generatortest.Catalogue() {
		if scenario.Fault == fault {
			return scenario
		}
	}
	require.Fail(t, "no such fault", fault)
	return generatortest.Scenario{}
}

// TestLayouts runs the faults on layouts whose ticks hold more IDs, or are longer, or
// fill all 63 bits, where a wrong tick may look like a right one.
func TestLayouts(t *testing.T) {
	wide := snowflake.Default()
	wide.NodeBits, wide.SequenceBits = 0, 22
	for name, layout := range map[string]snowflake.Layout{
		"default":       snowflake.Default(),
		"wide-sequence": wide,
		"sonyflake":     snowflake.Sonyflake(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []strategies.Strategy{strategies.Default(), strategies.Reject(), strategies.BorrowUpTo(time.Minute)} {
				t.Run(fmt.Sprint(s), func(t *testing.T) {
					generatortest.Test(t, generatortest.Tickflake(s, generatortest.Raw, generator.WithLayout(layout), generator.WithNode(0)))
				})
			}
		})
	}
}
