package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestChaosScript(t *testing.T) {
	const script = "ids 20; step -1s; ids 5"
	assert.Equal(t, result{0, `reject on raw

   SCENARIO              IDS    ERRORS  DUPLICATES  DISORDER       STALL        LEAD
✓  standard input         19        10           0         0          0s          0s

1 ✓, 0 ✗, 0 -
`, ""}, tickflakeReading("strategy reject;"+script, "chaos", "--script", "-"))

	for _, tt := range []struct {
		text, flags string
		want        []string // the generators
	}{
		{"", "", []string{"default (wait:1s) on raw"}},
		{"clock mono; strategy leaf;", "", []string{"leaf (exhausted=wait/behind=wait:5ms) on mono"}},
		{"clock mono;", "--strategy reject --strategy wait", []string{"reject on mono", "wait on mono"}},
		{"clock mono; strategy leaf;", "--clock raw", []string{"leaf (exhausted=wait/behind=wait:5ms) on raw"}},
		{"clock mono; strategy leaf;", "--clock all --strategy wait", []string{"wait on raw", "wait on mono", "wait on resync"}},
	} {
		t.Run(tt.text+tt.flags, func(t *testing.T) {
			got := tickflakeReading(tt.text+script, append(strings.Fields("chaos --script - --format json"), strings.Fields(tt.flags)...)...)
			require.Equal(t, 0, got.code, got.err)
			var subjects []string
			for _, r := range reports(t, got) {
				subjects = append(subjects, r.Subject)
				// The script in the report repeats the run.
				again := tickflakeReading(r.Results[0].Script, "chaos", "--script", "-", "--format", "json")
				assert.Equal(t, r.Results, reports(t, again)[0].Results)
			}
			assert.Equal(t, tt.want, subjects)
		})
	}
}

func TestChaosBadScripts(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "script.txt")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	gone := filepath.Join(t.TempDir(), "gone")
	for _, tt := range []struct {
		name, file string
		err        string // as in TestExitCodes, after "tickflake: "
	}{
		{"gone", gone, "open " + gone + ": no such file or directory"},
		{"directory", os.TempDir(), "*: is a directory"},
		{"unknown step", file("ids 5\n\n# x\nstep -1s; jump 3"), `*script.txt: script line 4: "jump 3": not known: want ids, *`},
		{"setting too late", file("ids 5\nclock raw"), `*script.txt: script line 2: "clock raw": settings come before the first step`},
		{"NUL bytes", file("ids 5\n\x00\x00\x00"), `*script.txt: script line 2: "\x00\x00\x00": not known: *`},
		{"binary", file("\x7fELF\x02\xff\xfe"), `*script.txt: script line 1: "\x7fELF\x02\xff\xfe": not known: *`},
		{"too large", file(strings.Repeat("# \n", maxScript/3+1)), "*script.txt: longer than the 4194304 bytes that a script may have"},
		{"too many steps", file(strings.Repeat("leap\n", 100_001)), "*script.txt: script*: want at most 100000*"},
		{"too many IDs", file("ids 20000000\nids 1"), "*script.txt: script line 2: \"ids 1\": that makes 20000001 IDs in all: at most 20000000"},
		{"empty", file("# nothing\n"), "*script.txt: script: it has no steps"},
		{"only settings", file("strategy wait"), "*script.txt: script: it has no steps"},
		{"beyond all clocks", file("begin 2150-01-01T00:00:00Z; step +490905h; ids 1"), "*script.txt was not run: it begins at 2150-01-01*, but clocks show 1678-*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tickflake("chaos", "--script", tt.file)
			assert.Equal(t, 1, got.code)
			assert.Truef(t, matches("tickflake: "+tt.err+"\n", got.err), "stderr is\n%s, want\n%s", got.err, tt.err)
			assert.NotContains(t, got.out, "✓  ")
		})
	}
}

// The longest script that there may be is read and run.
func TestChaosHugeScript(t *testing.T) {
	script := strings.Repeat("step -1ms # a comment that takes room\n", 99_999) + "ids 1"
	require.Less(t, len(script), maxScript)
	got := tickflakeReading(script, "chaos", "--script", "-", "--strategy", "wait")
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "1 ✓, 0 ✗, 0 -\n")
}

func TestChaosScriptInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cli.Interruption{Signal: syscall.SIGTERM})
	got := chaosWith(func(*chaos) {}, ctx, "ids 7", "--script", "-")
	assert.Equal(t, 143, got.code)
	assert.Empty(t, got.out)
}

// stuckReader is a terminal without input.
type stuckReader struct{ asked func() }

func (r stuckReader) Read([]byte) (int, error) {
	r.asked()
	select {}
}

func TestChaosInterruptedWhileItWaitsForAScript(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var out, err strings.Builder
	code := run(ctx, []string{"chaos", "--script", "-"}, stuckReader{func() { cancel(cli.Interruption{Signal: syscall.SIGINT}) }}, &out, &err)
	assert.Equal(t, result{130, "", "tickflake: standard input: interrupted\n"}, result{code, out.String(), err.String()})
}

// A call that hangs, or a script that runs for long, does not hold up the end.
func TestChaosInterruptedInAScript(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	stop := func(k *chaos) {
		k.subject = func(s strategies.Strategy, clock generatortest.ClockKind) generatortest.Subject[snowflake.ID] {
			subject := generatortest.Tickflake(s, clock)
			start := subject.New
			subject.New = func(c *clocktest.Virtual) (generatortest.Process[snowflake.ID], error) {
				p, err := start(c)
				p.Next = func() (snowflake.ID, error) {
					cancel(cli.Interruption{Signal: syscall.SIGINT})
					<-ended
					return 0, generator.ErrClosed
				}
				return p, err
			}
			return subject
		}
	}
	got := chaosWith(stop, ctx, "ids 5", "--script", "-")
	close(ended)
	assert.Equal(t, result{130, "", "tickflake: interrupted; 0 of 1 runs done\n"}, got)
}

// A wall that steps in the middle of a call is one of the suite's faults.
func TestChaosStepsAtReadings(t *testing.T) {
	got := tickflakeReading("strategy borrow:1s; ids 5; step -2ms at read 2; ids 5", "chaos", "--script", "-")
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "✓  standard input         14         0           0         0          0s         2ms\n", "the lead shows the step")
}
