package chaos_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
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

var faultOfTest = regexp.MustCompile(`^Test(F\d+)_`)

// everyStrategy runs the fault that the test is named after.
func everyStrategy(t *testing.T) {
	fault := faultOfTest.FindStringSubmatch(t.Name())[1]
	scenario := scenarioOf(t, fault)
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range generatortest.ClockKinds {
				t.Run(string(kind), func(t *testing.T) {
					generatortest.TestScript(t, c.subject(kind), scenario.Script)
				})
			}
			// Random starts change what a tick holds, and nothing else.
			t.Run("random-start", func(t *testing.T) {
				s := c.subject(generatortest.Raw, generator.WithSequenceStart(strategies.StartRandom(16)))
				generatortest.TestScript(t, s, scenario.Script)
			})
		})
	}
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

// TestLayouts runs the faults on layouts whose ticks are not used up so fast, or
// are longer, or fill all 63 bits, where a wrong tick may look like a right one.
func TestLayouts(t *testing.T) {
	wide := generator.DefaultLayout()
	wide.NodeBits, wide.SequenceBits = 0, 22
	for name, layout := range map[string]generator.Layout{
		"default":       generator.DefaultLayout(),
		"wide-sequence": wide,
		"sonyflake":     generator.Sonyflake(),
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
