package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// chaosWith runs a command line of chaos after a change to what it puts to the
// test.
func chaosWith(change func(*chaos), ctx context.Context, input string, args ...string) result {
	var out, stderr strings.Builder
	c := &console{in: strings.NewReader(input), out: bufio.NewWriter(&out), err: &stderr}
	started := false
	root := newRoot(c, &started)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "chaos" {
			root.RemoveCommand(cmd)
		}
	}
	k := realChaos(c)
	change(k)
	changed := k.command()
	prepare(changed, &started)
	root.AddCommand(changed)
	root.SetArgs(append([]string{"chaos"}, args...))
	cmd, err := root.ExecuteContextC(ctx)
	if flushErr := c.out.Flush(); err == nil {
		err = flushErr
	}
	code := conclude(&stderr, cmd, err)
	return result{code, out.String(), stderr.String()}
}

// proud claims that its generator never waits and never rejects.
func proud(k *chaos) {
	k.subject = func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
		subject := leasetest.Leased{Strategy: s, Clock: clock}.Subject()
		subject.Claim = generatortest.Claim{Exhausted: generatortest.Bound{Borrow: time.Second}}
		return subject
	}
}

func TestChaosTable(t *testing.T) {
	var b strings.Builder
	table := &tableReports{w: bufio.NewWriter(&b)}
	v := generatortest.Violation{Kind: generatortest.Duplicate, Step: 2, Call: 71, At: 5 * time.Millisecond, Detail: "7 was issued before"}
	d := generatortest.Violation{Kind: generatortest.Disorder, Step: 2, Call: 72, At: 5 * time.Millisecond, Detail: "6 after 7"}
	require.NoError(t, table.write(report{"reject on raw", []outcome{
		{Result: generatortest.Result{Fault: "F4", Name: "forward-then-back", Issued: 52, Errors: 223}},
		{Result: generatortest.Result{Fault: "F11", Name: "restart-after-step-back", Skipped: "it keeps no state across a restart"}},
		{Result: generatortest.Result{Fault: "F17", Name: "end-of-time", Issued: 1, LargestLead: time.Millisecond, Note: "it refused to start, as it may: too late"}},
		{Result: generatortest.Result{Fault: "F16", Name: "exhaustion", Issued: 1_060_004, Duplicates: 1, LongestStall: 1500 * time.Microsecond, LargestLead: time.Hour,
			Violated: map[generatortest.Kind]int{"duplicate": 1}, Violations: []generatortest.Violation{v}, Script: "ids 70; ids 1"}},
	}}))
	require.NoError(t, table.write(report{"wait on mono", []outcome{
		{Result: generatortest.Result{Name: "my.txt", Issued: 3, Disorder: 11, Violated: map[generatortest.Kind]int{"duplicate": 2, "disorder": 11}, Violations: []generatortest.Violation{v, v, d, d, d}, Script: "ids 3"}},
	}}))
	require.NoError(t, table.end())
	require.NoError(t, table.w.Flush())
	assert.Equal(t, `reject on raw

   SCENARIO                           IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD
✓  F4  forward-then-back               52       223           0         0          0s          0s
-  F11 restart-after-step-back  does not apply: it keeps no state across a restart
✓  F17 end-of-time                      1         0           0         0          0s         1ms  it refused to start, as it may: too late
✗  F16 exhaustion               1,060,004         0           1         0       1.5ms      1h0m0s

✗ F16 exhaustion: 1 duplicate
  duplicate: 7 was issued before (step 2, call 71, 5ms in)
  script: ids 70; ids 1

wait on mono

   SCENARIO        IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD
✗  my.txt            3         0           0        11          0s          0s

✗ my.txt: 11 disorder, 2 duplicate; the first 3 of each:
  duplicate: 7 was issued before (step 2, call 71, 5ms in)
  duplicate: 7 was issued before (step 2, call 71, 5ms in)
  disorder: 6 after 7 (step 2, call 72, 5ms in)
  disorder: 6 after 7 (step 2, call 72, 5ms in)
  disorder: 6 after 7 (step 2, call 72, 5ms in)
  script: ids 3

2 ✓, 2 ✗, 1 -
`, b.String())
}

func TestChaosCatalogue(t *testing.T) {
	got := tickflake("chaos", "--strategy", "twitter", "--clock", "raw", "--fault", "f17", "--fault", "F4", "--fault", "F11")
	require.Equal(t, result{0, got.out, ""}, got)
	assert.Regexp(t, `^twitter \(exhausted=wait/behind=reject\) on raw

   SCENARIO  +IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD
✓  F4  forward-then-back .*
✓  F11 restart-after-step-back .*
✓  F17 end-of-time .*

3 ✓, 0 ✗, 0 -
$`, got.out)
	assert.NotRegexp(t, `(?m) $`, got.out, "blanks at the end of a line")

	whole := tickflake("chaos", "--strategy", "wait", "--clock", "mono")
	assert.Contains(t, whole.out, " -\nnot run: F14, F15, F19, F20, F21. ")
}

// By hand, a node number has no state that a restart could go on from.
func TestChaosNoLease(t *testing.T) {
	args := []string{"chaos", "--clock", "mono", "--fault", "F4,F11,f12,F13", "--no-lease"}
	got := tickflake(args...)
	require.Equal(t, result{0, got.out, ""}, got)
	const skipped = ` +does not apply: it keeps no state across a restart \(Process.Restart\)`
	assert.Regexp(t, `^default \(wait:1s\) on mono, no lease

   SCENARIO .*
✓  F4  forward-then-back .*
-  F11 restart-after-step-back`+skipped+`
-  F12 crash-after-burst`+skipped+`
-  F13 pause-and-takeover`+skipped+`

1 ✓, 0 ✗, 3 -
$`, got.out)

	leased := reports(t, tickflake("chaos", "--clock", "mono", "--fault", "F4,F11,F12,F13", "--format", "json"))
	require.Len(t, leased, 1)
	for _, r := range leased[0].Results {
		assert.True(t, r.OK(), r)
	}
	assert.Equal(t, "default (wait:1s) on mono", leased[0].Subject)

	script := filepath.Join(t.TempDir(), "script.txt")
	require.NoError(t, os.WriteFile(script, []byte("strategy reject; ids 20; crash; ids 5"), 0o600))
	assert.Zero(t, tickflake("chaos", "--script", script).code)
	got = tickflake("chaos", "--script", script, "--no-lease")
	assert.Equal(t, 1, got.code, "it was not run")
	assert.Contains(t, got.err, "it keeps no state across a restart")
}

func TestChaosViolation(t *testing.T) {
	got := chaosWith(proud, context.Background(), "", "--clock", "raw", "--fault", "F18", "--fault", "F7")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.err)
	assert.Regexp(t, `^default \(wait:1s\) on raw

   SCENARIO .*
✗  F7  freeze  .*
✓  F18 before-epoch  .* it refused to start, as it may: .*\S

✗ F7 freeze: .*\d+ stall; the first 3 of each:
(  \S+: .* \(step \d+, call \d+, .* in\)
)+  script: strategy wait:1s; clock raw; ids 100; freeze .*

1 ✓, 1 ✗, 0 -
$`, got.out)
	assert.NotRegexp(t, `(?m) $`, got.out, "blanks at the end of a line")
}

// A script as a report prints it does the same again, on the same generator.
func TestChaosScriptOfViolationReplays(t *testing.T) {
	first := chaosWith(proud, context.Background(), "", "--strategy", "wait", "--clock", "mono", "--fault", "F7")
	script := regexp.MustCompile(`\n  script: (.*)\n`).FindStringSubmatch(first.out)
	require.Len(t, script, 2)
	file := filepath.Join(t.TempDir(), "failure.txt")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(script[1], "; ", "\r\n")), 0o600))
	again := chaosWith(proud, context.Background(), "", "--script", file)
	assert.Equal(t, 1, again.code)
	assert.True(t, strings.HasPrefix(again.out, "wait on mono\n"), "the script says for what it is")
	below := func(r result) string { return r.out[strings.Index(r.out, " stall; the first"):] }
	assert.Equal(t, below(first), below(again))
	figures := func(r result) []string {
		fields := strings.Fields(r.lines()[3])
		return fields[len(fields)-6:]
	}
	assert.Equal(t, figures(first), figures(again))
	assert.Equal(t, again, chaosWith(proud, context.Background(), "", "--script", file))
}

// reports are what --format json prints.
func reports(t *testing.T, r result) []generatortest.Report {
	t.Helper()
	var all []generatortest.Report
	for _, line := range r.lines() {
		var one generatortest.Report
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return all
}

// The three formats say the same.
func TestChaosFormatsAgree(t *testing.T) {
	args := []string{"--strategy", "all", "--clock", "raw", "--clock", "mono", "--fault", "F2", "--fault", "F7", "--fault", "F12", "--fault", "F18"}
	proud := func(k *chaos) { // and keeps nothing, so that some of it does not apply
		proud(k)
		leased := k.subject
		k.subject = func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			subject := generatortest.Tickflake(s, clock)
			subject.Claim = leased(s, clock).Claim
			return subject
		}
	}
	in := func(format string) result {
		r := chaosWith(proud, context.Background(), "", append(args, "--format", format)...)
		assert.Equal(t, 1, r.code, format)
		assert.Empty(t, r.err)
		return r
	}
	table, list := in("table"), reports(t, in("json"))
	var doc junitSuites
	text := in("junit").out
	require.NoError(t, xml.Unmarshal([]byte(text), &doc))
	assert.True(t, strings.HasPrefix(text, xml.Header))
	assert.True(t, strings.HasSuffix(text, "</testsuites>\n"))

	require.Len(t, list, 2*len(presetStrategies))
	require.Len(t, doc.Suites, len(list))
	tests, failures, skipped, notes := 0, 0, 0, 0
	for i, r := range list {
		suite := doc.Suites[i]
		assert.Equal(t, r.Subject, suite.Name)
		assert.Contains(t, table.out, r.Subject+"\n\n")
		assert.Regexp(t, `^\d+\.\d{3}$`, suite.Time)
		require.Len(t, r.Results, 4)
		require.Len(t, suite.Cases, 4)
		counts := [2]int{}
		for j, res := range r.Results {
			c := suite.Cases[j]
			tests++
			assert.Equal(t, res.Fault+" "+res.Name, c.Name)
			assert.Equal(t, r.Subject, c.Class)
			assert.Equal(t, res.Failed(), c.Failure != nil)
			assert.Equal(t, res.Skipped != "", c.Skipped != nil)
			assert.Equal(t, res.Note, c.Note)
			if res.Note != "" {
				notes++
				assert.Contains(t, table.out, "  "+res.Note+"\n")
			}
			switch {
			case res.Failed():
				counts[0]++
				assert.Equal(t, string(res.Violations[0].Kind), c.Failure.Type)
				assert.Contains(t, table.out, "✗ "+c.Failure.Message+"\n")
				for _, v := range res.Violations {
					assert.Contains(t, c.Failure.Text, v.String())
					assert.Contains(t, table.out, "  "+v.String()+"\n")
				}
				assert.Contains(t, c.Failure.Text, res.Script)
				assert.Contains(t, table.out, "  script: "+res.Script+"\n")
			case res.Skipped != "":
				counts[1]++
				assert.Equal(t, "does not apply: "+res.Skipped, c.Skipped.Message)
				assert.Contains(t, table.out, c.Skipped.Message)
			}
		}
		assert.Equal(t, [3]int{4, counts[0], counts[1]}, [3]int{suite.Tests, suite.Failures, suite.Skipped})
		failures, skipped = failures+counts[0], skipped+counts[1]
	}
	assert.Equal(t, [3]int{tests, failures, skipped}, [3]int{doc.Tests, doc.Failures, doc.Skipped})
	assert.Equal(t, tests-failures-skipped, strings.Count(table.out, "\n✓ "))
	assert.Contains(t, table.out, fmt.Sprintf("\n%d ✓, %d ✗, %d -\n", tests-failures-skipped, failures, skipped))
	assert.Positive(t, failures)
	assert.Positive(t, skipped)
	assert.Positive(t, notes)
}

func TestChaosRunsWhatItIsAskedFor(t *testing.T) {
	subjects := func(args ...string) []string {
		var all []string
		for _, r := range reports(t, tickflake(append([]string{"chaos", "--format", "json", "--fault", "F18"}, args...)...)) {
			all = append(all, r.Subject)
		}
		return all
	}
	assert.Equal(t, []string{"default (wait:1s) on raw", "default (wait:1s) on mono"}, subjects())
	assert.Equal(t, []string{"wait on resync", "wait on raw", "wait on mono"}, subjects("--clock", "resync", "--clock", "all", "--strategy", "wait", "--strategy", "wait"))
	assert.Equal(t, []string{"borrow:1s,wait:5s on mono", "reject on mono"}, subjects("--clock", "mono", "--strategy", "borrow:1s,wait:5s", "--strategy", "reject"))
	nine := subjects("--clock", "mono", "--strategy", "all")
	require.Len(t, nine, 9)
	page, err := os.ReadFile("../../docs/strategy.md")
	require.NoError(t, err)
	for i, name := range presetStrategies {
		assert.Regexp(t, `^`+regexp.QuoteMeta(name)+` .*on mono$`, nine[i])
		// The page writes borrow:1s as BorrowUpTo(1s).
		word, _, _ := strings.Cut(strings.ReplaceAll(name, "-", ""), ":")
		assert.Regexp(t, `(?i)\| .(like)?`+word, string(page))
	}

	// All of the catalogue, unless some of it is chosen.
	all := reports(t, tickflake("chaos", "--format", "json", "--clock", "mono"))
	var names []string
	for _, s := range generatortest.Catalogue() {
		names = append(names, s.Name)
	}
	var ran []string
	for _, r := range all[0].Results {
		ran = append(ran, r.Name)
	}
	assert.Equal(t, names, ran)
}

func TestChaosInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := func(k *chaos) {
		k.subject = func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			if clock == generatortest.Mono {
				cancel(cli.Interruption{Signal: syscall.SIGINT})
				time.Sleep(time.Hour)
			}
			return generatortest.Tickflake(s, clock)
		}
	}
	got := chaosWith(stop, ctx, "", "--fault", "F1", "--format", "json")
	assert.Equal(t, 130, got.code)
	assert.Equal(t, "tickflake: interrupted; 1 of 2 runs done\n", got.err)
	assert.Len(t, reports(t, got), 1, "what was done is written")

	got = chaosWith(stop, ctx, "", "--fault", "F1", "--format", "junit")
	assert.Equal(t, 130, got.code)
	var doc junitSuites
	assert.NoError(t, xml.Unmarshal([]byte(got.out), &doc), "the document is whole")
	assert.Equal(t, "tickflake: interrupted; 0 of 2 runs done\n", got.err)
}
