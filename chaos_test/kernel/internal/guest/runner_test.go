//go:build linux

package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
)

// runProgram runs the fault "none" on a shell script beside a subject that is well.
func runProgram(t *testing.T, script string) (program, beside Result) {
	t.Helper()
	old := programPath
	t.Cleanup(func() { programPath = old })
	programPath = filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(programPath, []byte("#!/bin/sh\n"+script), 0o755))
	h := startServe(t)
	results, failed := h.run(Request{Run: "none", Subjects: []string{Program, wellName}, Args: []string{"5"}})
	require.Empty(t, failed)
	require.Len(t, results, 2)
	require.Zero(t, results[1].Verdict.Failed)
	require.Greater(t, results[1].Verdict.IDs, 50, "the subject beside is starved")
	return results[0], results[1]
}

func TestProgramFloods(t *testing.T) {
	r, _ := runProgram(t, `exec awk 'BEGIN { for (i = 1; ; i++) print i }'`)
	require.Greater(t, r.Verdict.IDs, 100)
	// A second at the bounded rate, and the pipe when it is killed: without the bound, millions.
	require.Less(t, r.Verdict.IDs, 40_000)
	require.Zero(t, r.Verdict.Duplicates+r.Verdict.Disorder+r.Verdict.Failed)
}

func TestProgramEnds(t *testing.T) {
	r, _ := runProgram(t, "echo $1; echo oh no >&2; exit 3")
	require.GreaterOrEqual(t, r.Verdict.IDs, 2, "it is started again")
	require.Less(t, r.Verdict.IDs, 10, "but not at once")
	require.Equal(t, r.Verdict.IDs-1, r.Verdict.Duplicates)
	require.InDelta(t, r.Verdict.IDs, r.Verdict.Failed, 1)
	require.Equal(t, "the process ended by itself: exit status 3: oh no", r.Verdict.Error)
	require.True(t, strings.HasSuffix(r.Stderr, "oh no\n"), r.Stderr)
}

// What a program has printed at its end is counted, though it printed faster than it is read.
func TestProgramFloodsAndEnds(t *testing.T) {
	r, _ := runProgram(t, "test -e printed && exec sleep 1000; touch printed; exec seq 1 12000")
	require.Equal(t, 12000, r.Verdict.IDs)
}

func TestProgramPrintsBytes(t *testing.T) {
	r, _ := runProgram(t, `printf '\377\n\376\n'; exec sleep 1000`)
	require.Zero(t, r.Verdict.IDs)
	require.Equal(t, 2, r.Verdict.Failed)
	require.Equal(t, `a line is no text in UTF-8: "\xff"`, r.Verdict.Error)
}

// The cause of a fault is looked for in errors and in the log, in all of their text.
func TestCauseIsNamed(t *testing.T) {
	r := &runner{stage: &Stage{causes: []string{"no space", "no more"}}, ledger: &ledger{check: check.New(check.Text)}}
	r.add(check.ID{Err: "late"})
	r.readLog(strings.NewReader("all is well"))
	require.False(t, r.named)
	r.add(check.ID{Err: strings.Repeat("x", 1000) + "no more"})
	require.True(t, r.named)
	r.named = false
	r.readLog(strings.NewReader("no spa"))
	r.readLog(strings.NewReader("ce " + strings.Repeat("x", stderrKept)))
	require.True(t, r.named, "the end of the log has it no more")
}

func TestProgramCannotStart(t *testing.T) {
	r, _ := runProgram(t, "")
	require.Zero(t, r.Verdict.IDs)
	require.Equal(t, "the process ended by itself: exit status 0", r.Verdict.Error)
}

func TestProgramWithChildren(t *testing.T) {
	// The child has the pipe still when its parent is dead.
	r, _ := runProgram(t, "sleep 1000 & echo 1; wait")
	require.Equal(t, 1, r.Verdict.IDs)
	r, _ = runProgram(t, "setsid sleep 5 & echo 1; wait")
	require.Equal(t, 1, r.Verdict.IDs)
}

func TestProgramPrintsALongLine(t *testing.T) {
	r, _ := runProgram(t, `exec awk 'BEGIN { for (;;) printf "x" }'`)
	require.Zero(t, r.Verdict.IDs)
	require.Contains(t, r.Verdict.Error, "a line of more than 4096 bytes")
}
