package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/simulation"
)

// torn is a core that issues IDs twice: it reads its word and writes it in two
// steps, and others may come in between, where the clock is read.
type torn struct {
	simulation.Env
	free uint64
}

func (c *torn) Next() (core.ID, error) {
	free := c.free
	c.Clock.Now()
	c.free = free + 1
	// The node has two bits and the sequence four; ticks are those of the clock.
	return core.ID((free>>4)<<6 | 1<<4 | free&15), nil
}

// tornFrom makes all programs from a seed on run on a torn core.
func tornFrom(first uint64) func(*chaos) {
	return func(k *chaos) {
		k.program = func(seed uint64) simulation.Config {
			c := simulation.Config{Seed: seed, Callers: 2, SequenceBits: 4, Ops: []simulation.Op{
				{Kind: simulation.IDs, N: 4}, {Kind: simulation.IDs, N: 4},
			}}
			if seed >= first {
				c.Core = func(e simulation.Env) simulation.Core { return &torn{Env: e} }
			}
			return c
		}
	}
}

// rate is what a search says about its speed.
const rate = `^\d+ seeds in \S+: [\d,.]+ seeds/s\n$`

func TestChaosSeeds(t *testing.T) {
	got := tickflake("chaos", "--seeds", "300")
	assert.Equal(t, 0, got.code)
	assert.Regexp(t, `^✓ seeds 1 to 300: all promises kept, [\d,]{5,} IDs and [\d,]{3,} errors\n$`, got.out)
	assert.Regexp(t, rate, got.err)
	assert.Contains(t, got.err, "300 seeds in ")

	got = tickflake("chaos", "--seeds", "5", "--from", "1000", "--format", "json")
	assert.Equal(t, "seeds 1000 to 1004", reports(t, got)[0].Results[0].Name)
	got = tickflake("chaos", "--seeds", "3", "--format", "junit")
	assert.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="tickflake chaos" tests="1" failures="0" errors="0" skipped="0">
  <testsuite name="simulation" tests="1" failures="0" errors="0" skipped="0">
    <testcase classname="simulation" name="seeds 1 to 3"></testcase>
  </testsuite>
</testsuites>
`, got.out)
}

func TestChaosSeedThatFails(t *testing.T) {
	ctx := context.Background()
	var want string
	for _, parallel := range []string{"1", "2", "7"} {
		got := chaosWith(tornFrom(40), ctx, "", "--seeds", "200", "--from", "3", "--parallel", parallel)
		assert.Equal(t, 1, got.code)
		assert.Regexp(t, rate, got.err)
		if want == "" {
			want = got.out
		}
		assert.Equal(t, want, got.out, "it is the lowest seed, however many run at once")
	}
	assert.Regexp(t, `^✗ seed 6\d: `, chaosWith(tornFrom(40), ctx, "", "--seeds", "20", "--from", "60").out)
	require.Regexp(t, `^✗ seed 4\d: 1 (duplicate|order)
  [^\n]+

Its script, which you may save and replay with 'tickflake chaos --script FILE':

# This seed makes the program
#   strategy wait:1s
#   clock raw
#   2 callers, in any order, up to 0s pass while a clock is read
#   layout of 41 bits of time, 4 of sequence, which begins at 0; start 0s after the epoch
#   op 0: ids 4
#   op 1: ids 4
seed 4\d

Or at once, step by step:

  echo 'seed 4\d' \| tickflake chaos --script - --trace
$`, want)

	// The script alone replays it, and all of the text around it is not needed.
	at := strings.Index(want, "# This seed")
	script := want[at : at+strings.Index(want[at:], "\n\n")]
	replayed := chaosWith(tornFrom(40), ctx, script, "--script", "-")
	assert.Equal(t, result{1, want, ""}, replayed)
	seed := strings.TrimPrefix(script[strings.LastIndex(script, "\n")+1:], "seed ")

	traced := chaosWith(tornFrom(40), ctx, "seed "+seed, "--script", "-", "--trace")
	trace, report, ok := strings.Cut(traced.out, "\n\n")
	require.True(t, ok)
	assert.Equal(t, want, report)
	assert.Regexp(t, `(?s)^   1  caller \d: .*violation: [^\n]+$`, trace)
	assert.Equal(t, traced, chaosWith(tornFrom(40), ctx, "", "--seeds", "1", "--from", seed, "--trace"))

	for _, args := range [][]string{{"--seeds", "200"}, {"--script", "-"}} {
		got := chaosWith(tornFrom(40), ctx, script, append(args, "--format", "json")...)
		assert.Equal(t, 1, got.code)
		r := reports(t, got)[0].Results[0]
		assert.Equal(t, "seed "+seed, r.Name)
		assert.Equal(t, script, r.Script)
		require.Len(t, r.Violations, 1)
		assert.Equal(t, map[generatortest.Kind]int{r.Violations[0].Kind: 1}, r.Violated)
		assert.Contains(t, want, fmt.Sprintf("  %s: %s\n", r.Violations[0].Kind, r.Violations[0].Detail))
		assert.Equal(t, 1, r.Duplicates+r.Disorder)

		junit := chaosWith(tornFrom(40), ctx, script, append(args, "--format", "junit")...)
		assert.Equal(t, 1, junit.code)
		assert.Contains(t, junit.out, ` tests="1" failures="1" `)
		assert.Contains(t, junit.out, `<failure message="seed `+seed+`: 1 `+string(r.Violations[0].Kind)+`" type="`+string(r.Violations[0].Kind)+`">`)
	}
}

func TestChaosSeedThatCannotBeRun(t *testing.T) {
	got := chaosWith(func(k *chaos) {
		k.program = func(seed uint64) simulation.Config { return simulation.Config{Seed: seed, Callers: 99} }
	}, context.Background(), "", "--seeds", "2")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "✗ seed 1: 1 not-run\n  not-run: 99 callers: ")
}

func TestChaosTrace(t *testing.T) {
	got := tickflake("chaos", "--seeds", "1", "--from", "17", "--trace")
	assert.Equal(t, result{0, got.out, ""}, got)
	assert.Regexp(t, `(?s)^   1  .*\n\n✓ seed 17: all promises kept, [\d,]+ IDs and [\d,]+ errors\n$`, got.out)
	assert.Equal(t, got, tickflakeReading("seed 17", "chaos", "--script", "-", "--trace"))

	const script = "strategy wait; callers 2; seed 5; ids 4; step -1ms; ids 2"
	got = tickflakeReading(script, "chaos", "--script", "-", "--trace")
	assert.Equal(t, result{0, got.out, ""}, got)
	for _, want := range []string{"   1  ", "caller 0: begins ", "caller 1: begins ", "fault: step -1ms\n", "\n\nwait on raw\n", "✓  standard input          6"} {
		assert.Contains(t, got.out, want)
	}
	assert.Equal(t, got, tickflakeReading(script, "chaos", "--script", "-", "--trace"))
	for _, other := range []string{"seed 6", "seed 8", "seed 11"} { // the last two with the same kind of schedule
		assert.NotEqual(t, got, tickflakeReading(strings.ReplaceAll(script, "seed 5", other), "chaos", "--script", "-", "--trace"))
	}
}

// Every step of the language that the simulation knows arrives there.
func TestChaosSimulatesScripts(t *testing.T) {
	const script = "strategy wait\nclock resync\nbegin end-10s\ncallers 3\nseed 8\n" +
		"ids 7\nids 4 over 1ms\nbatch 5\nstream 6\npass 2ms\nstep +3ms\nslew 0.5 for 4ms\nfreeze 5ms\ncoarse 6ms\nsuspend 7ms\nleap\nids 1"
	got := tickflakeReading(script, "chaos", "--script", "-", "--trace")
	require.Equal(t, 0, got.code, got.err+got.out)
	for _, want := range []string{
		"caller 0: begins a call of ids 2", "caller 1: begins a call of ids 2", "caller 2: begins a call of ids 3", "begins a call of ids 1", "fault: pass 250µs",
		"begins a call of batch 5", "begins a call of stream 6",
		"fault: pass 2ms", "fault: step 3ms", "fault: slew 0.5 for 4ms", "fault: freeze 5ms", "fault: coarse 6ms", "fault: suspend 7ms", "fault: leap",
		"wait on resync\n", "✓  standard input         23",
		"reads clock 610839h47m25.552s\n", // 69.7 years after the epoch, less ten seconds
	} {
		assert.Contains(t, got.out, want)
	}
	got = tickflakeReading("strategy wait; begin 2026-01-01T00:00:01Z; seed 3; ids 1", "chaos", "--script", "-", "--trace")
	assert.Contains(t, got.out, "reads clock 1s\n")
	got = tickflakeReading("seed 3; ids 1", "chaos", "--script", "-", "--trace")
	assert.Contains(t, got.out, "reads clock 3636h0m0s\n", "noon of the first of June")

	// A generator that knows how far it may borrow does not ask for every ID.
	got = tickflakeReading("strategy borrow:1s; seed 3; ids 40", "chaos", "--script", "-", "--trace")
	assert.Less(t, strings.Count(got.out, " reads clock "), 50)
	assert.NotContains(t, got.out, "waits")
	assert.Contains(t, got.out, "tick 13089600002, sequence 7", "a tick has 16 IDs")
}

// A violation names the step of the script, whatever became of it on the way.
func TestChaosSimulatedScriptThatFails(t *testing.T) {
	broken := func(k *chaos) {
		k.simulate = func(c simulation.Config) simulation.Result {
			c.Core, c.Start = func(e simulation.Env) simulation.Core { return &torn{Env: e} }, 0
			return simulation.Run(c)
		}
	}
	const script = "strategy wait; clock raw; callers 2; seed 4; ids 1; ids 1; ids 2 over 2µs; ids 30"
	got := chaosWith(broken, context.Background(), script, "--script", "-", "--format", "json")
	require.Equal(t, 1, got.code, got.err)
	r := reports(t, got)[0].Results[0]
	assert.Equal(t, script, r.Script)
	require.Len(t, r.Violations, 1)
	v := r.Violations[0]
	assert.Regexp(t, ` \(caller \d, op [67]\)$`, v.Detail, "that is, in the last step")
	assert.Equal(t, 4, v.Step)

	got = chaosWith(broken, context.Background(), script, "--script", "-")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, fmt.Sprintf("✗ standard input: 1 %s\n  %s: %s\n  script: %s\n\n0 ✓, 1 ✗, 0 -\n", v.Kind, v.Kind, v.Detail, script))
}

// Each clock is what its name says.
func TestChaosSimulatesClocks(t *testing.T) {
	for clock, want := range map[string][2]bool{"raw": {false, false}, "mono": {true, false}, "resync": {true, true}} {
		got := tickflakeReading("seed 3; ids 1; suspend 1h; pass 2s; ids 5", "chaos", "--script", "-", "--trace", "--clock", clock)
		require.Equal(t, 0, got.code)
		read := [2]bool{strings.Contains(got.out, " reads elapsed "), strings.Contains(got.out, " reads wall ")}
		assert.Equal(t, want, read, clock)
	}
}

func TestChaosSeedsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := func(k *chaos) {
		k.program = func(seed uint64) simulation.Config {
			if seed == 50 {
				cancel(&interruption{signal: syscall.SIGINT})
			}
			return simulation.Random(seed)
		}
	}
	got := chaosWith(stop, ctx, "", "--seeds", "1000000000", "--parallel", "1")
	assert.Equal(t, result{130, "", "tickflake: interrupted; 50 of 1000000000 seeds done\n"}, got)
}
