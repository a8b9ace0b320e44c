package chaos_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/chaos_test/mutants"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
)

// faults draws scripts: any sequence of calls and faults of any size, with small
// ones more often than large ones, as that is where ticks begin and end.
func faults(actions ...generatortest.Action) *rapid.Generator[generatortest.Script] {
	span := func(longest time.Duration) *rapid.Generator[time.Duration] {
		return rapid.OneOf(
			rapid.Map(rapid.IntRange(1, 20), func(n int) time.Duration { return time.Duration(n) * time.Millisecond }),
			rapid.Map(rapid.IntRange(1, 3000), func(n int) time.Duration { return time.Duration(n) * time.Microsecond }),
			rapid.Map(rapid.Int64Range(1, int64(longest/time.Second)), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
		)
	}
	step := rapid.Custom(func(t *rapid.T) generatortest.Step {
		s := generatortest.Step{Do: rapid.SampledFrom(actions).Draw(t, "action")}
		switch s.Do {
		case generatortest.IDs:
			s.Count = rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 400)).Draw(t, "count")
			if rapid.Bool().Draw(t, "spread") {
				s.Time = span(5*time.Second).Draw(t, "over")
			}
		case generatortest.Batch, generatortest.Stream:
			s.Count = rapid.IntRange(1, 100).Draw(t, "count")
		case generatortest.StepWall:
			s.Time = span(48*time.Hour).Draw(t, "by") * time.Duration(1-2*rapid.IntRange(0, 1).Draw(t, "back"))
			s.Count = rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 4), rapid.IntRange(1, 100)).Draw(t, "at read") // 0 is at once
		case generatortest.Crash:
			s.Count = rapid.IntRange(0, 4).Draw(t, "at read") // 0 is between two calls
		case generatortest.Slew:
			s.Rate = rapid.SampledFrom([]float64{0.5, 0.9, 0.999, 1.001, 1.1, 2}).Draw(t, "rate")
			s.Time = span(10*time.Second).Draw(t, "for")
		case generatortest.Freeze:
			s.Time = rapid.SampledFrom([]time.Duration{1, 3, 20, 100}).Draw(t, "for") * time.Millisecond
		case generatortest.Coarse:
			s.Time = rapid.SampledFrom([]time.Duration{0, 500 * time.Microsecond, 10 * time.Millisecond, 15_600 * time.Microsecond}).Draw(t, "to")
		case generatortest.Pass, generatortest.Suspend, generatortest.Takeover:
			s.Time = span(time.Hour).Draw(t, "for")
		}
		return s
	})
	return rapid.Map(rapid.SliceOfN(step, 1, 40), func(steps []generatortest.Step) generatortest.Script {
		return generatortest.Script{Steps: steps}
	})
}

// inProcess are the actions for a generator without a store.
var inProcess = []generatortest.Action{
	generatortest.IDs, generatortest.IDs, generatortest.IDs, generatortest.Batch, generatortest.Stream, generatortest.Pass,
	generatortest.StepWall, generatortest.StepWall, generatortest.Slew, generatortest.Freeze, generatortest.Coarse,
	generatortest.Suspend, generatortest.Leap,
}

// across are those for a generator that keeps its state across a restart.
var across = append(inProcess[:len(inProcess):len(inProcess)],
	generatortest.Restart, generatortest.Crash, generatortest.Takeover)

// TestAnyScript puts every strategy through faults of any size in any order. It shrinks
// a failure to a script that `tickflake-chaos run --script` replays.
func TestAnyScript(t *testing.T) { anyScript(t, claim.subject, 1, inProcess...) }

// TestAnyScriptUnderALease does the same with processes that end, die and are taken
// over from at any time. A wait begins again after a grant that ended meanwhile (Generator.NextContext), and
// [generatortest.Leased] makes a call without a grant once more. The strategy made here asks for many short waits, so both can
// be long. It borrows afterwards, so that a longer bound excuses no refusal.
func TestAnyScriptUnderALease(t *testing.T) {
	anyScript(t, func(c claim, kind generatortest.ClockKind, opts ...generator.Option) generatortest.Subject[snowflake.ID] {
		if c.name == "of-ones-own" {
			c.Exhausted.Wait *= 2
			c.Behind.Wait *= 2
		}
		return c.leased(kind, opts...)
	}, 1, across...)
}

// TestAnyScriptAmongCallers does the same with several callers. A failure may depend on
// the Go scheduler, and need several runs to show again.
func TestAnyScriptAmongCallers(t *testing.T) {
	anyScript(t, claim.subject, 8, inProcess[:len(inProcess)-1]...) // without the leap second
}

// searches are so many scripts for each strategy and clock; -rapid.checks, as nightly sets it, asks for more.
const searches = "30"

func anyScript(t *testing.T, subjectOf func(claim, generatortest.ClockKind, ...generator.Option) generatortest.Subject[snowflake.ID], callers int, actions ...generatortest.Action) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		require.NoError(t, checks.Value.Set(searches))
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	for _, c := range claims {
		for _, kind := range clocksOf(generatortest.Script{Callers: callers}) {
			t.Run(c.name+"/"+string(kind), func(t *testing.T) {
				subject := subjectOf(c, kind)
				rapid.Check(t, func(t *rapid.T) {
					script := c.script(faults(actions...).Draw(t, "script"), kind)
					if callers > 1 {
						script.Callers = rapid.IntRange(2, callers).Draw(t, "callers")
					}
					mustHold(t, generatortest.RunScript(subject, script), script)
				})
			})
		}
	}
}

func TestAnyScriptOnTheControl(t *testing.T) {
	subject := broken(mutants.Control)
	rapid.Check(t, func(t *rapid.T) {
		script := faults(across...).Draw(t, "script")
		mustHold(t, generatortest.RunScript(subject, script), script)
	})
}

// mustHold fails with the violations and the script to replay them. The command line
// can only replay a script with a strategy.
func mustHold(t rapid.TB, r generatortest.Result, script generatortest.Script) {
	if r.Skipped != "" {
		t.Fatalf("does not apply: %s\n%s", r.Skipped, script)
	}
	if r.Failed() {
		how := "replay this with generatortest.TestScript"
		if script.Strategy != "" {
			how = "replay this with tickflake-chaos run --script FILE (and --no-lease, if the test has none)"
		}
		t.Fatalf("%s\n%s:\n\n%s\n", r.Violations[0], how, script)
	}
}
