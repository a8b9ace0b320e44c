package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tickflake-chaos": main,
		"proud-chaos":     func() { proud(); main() },
		"ended-chaos":     func() { endEarly(); main() },
		"bench-chaos":     func() { fakeBench(); main() },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE") != ""})
}

// TestDocs parses the command lines of the pages, so that no page has a command or a flag that does not exist.
func TestDocs(t *testing.T) {
	line := regexp.MustCompile("(?m)(?:^    |`)(?:go run [.]/cmd/|[.]/)?tickflake-chaos ((?:run|script|list|kernel)\\b[^`\n]*)")
	parsed := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range line.FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(regexp.MustCompile(`[#>|].*`).ReplaceAllString(found[1], ""))
			cmd, rest, err := newRoot(&command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}).Find(args)
			if assert.NoError(t, err, "%s: %s", path, found[1]) {
				cmd.InitDefaultHelpFlag()
				assert.NoError(t, cmd.ParseFlags(rest), "%s: %s", path, found[1])
			}
			parsed++
		}
		return err
	}))
	assert.Greater(t, parsed, 4, "the pattern finds the command lines")
}

// proud makes the generator claim that it never waits.
func proud() {
	sound := subjectOf
	subjectOf = func(s strategies.Strategy, clock generatortest.ClockKind, leased bool) generatortest.Subject[snowflake.ID] {
		subject := sound(s, clock, leased)
		subject.Claim = generatortest.Claim{Exhausted: generatortest.Bound{Borrow: time.Second}}
		return subject
	}
}

// endEarly interrupts a run as it makes its first generator.
func endEarly() {
	sound, once := subjectOf, sync.OnceFunc(interrupt)
	subjectOf = func(s strategies.Strategy, clock generatortest.ClockKind, leased bool) generatortest.Subject[snowflake.ID] {
		once()
		return sound(s, clock, leased)
	}
}

func interrupt() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		panic(err)
	}
}

// fakeBench makes the bench return a report that has a row of every kind. It says on standard
// error what it was asked for. The variable BENCH changes it.
func fakeBench() {
	is := os.Getenv("BENCH")
	group := kernel.Ours
	if is == "program" || is == "peer" {
		group = kernel.Group(is)
	}
	report := kernel.Report{
		Kernel: "Linux 6.1.0", QEMU: "7.2.24",
		Rows: []kernel.Row{
			{Fault: "one", Subject: "default, raw", Group: kernel.Ours, Verdict: kernel.Verdict{IDs: 12345, Failed: 3, Stall: 12345678, Lead: 1e9, Recovery: 987654321}, Note: "9 writes"},
			{Fault: "one", Subject: "xid", Group: kernel.Peers, Verdict: kernel.Verdict{IDs: 70, Duplicates: 7, Error: "no\x1b[2J"}, Broken: []string{"7 duplicates", "it said\x1b so"}},
			{Fault: "two", Subject: "default, raw", Group: kernel.Ours, Verdict: kernel.Verdict{IDs: 5, Duplicates: 2, Recovery: -1}, Known: "memory restored without the call"},
		},
		Clocks:  []kernel.Clock{{Fault: "one", Host: 3e9, Realtime: -3597123e6, Monotonic: 3e9, Boottime: 3e9}},
		Skipped: []kernel.Skip{{Fault: "three", Why: "there is no nbdkit"}},
	}
	if is == string(group) {
		report = kernel.Report{Rows: []kernel.Row{{Fault: "one", Subject: "it", Group: group, Broken: []string{"2 duplicates"}, Verdict: kernel.Verdict{IDs: 1, Duplicates: 2}}}}
	}
	runFaults = func(ctx context.Context, o kernel.Options) (kernel.Report, error) {
		fmt.Fprintf(os.Stderr, "%d faults %q, %d subjects %q, program %q %q, ordered %t\n",
			len(o.Faults), o.Faults, len(o.Subjects), o.Subjects, filepath.Base(o.Program), o.Args, o.Ordered)
		if is == "interrupted" {
			report.Skipped = nil
			interrupt()
			<-ctx.Done()
			return report, ctx.Err()
		}
		return report, nil
	}
}
