//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/cli"
)

// asProgram makes the test binary run as the program, with sections that wait.
const asProgram = "TICKFLAKE_TEST_BENCH"

func TestMain(m *testing.M) {
	stubborn := os.Getenv(asProgram) == "stubborn"
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	waiting := with("two", func(ctx context.Context, run *measure.Run) results.Section {
		fmt.Fprintln(os.Stderr, "waiting")
		<-ctx.Done()
		if stubborn {
			fmt.Fprintln(os.Stderr, "waiting on")
			select {}
		}
		return fake("two").Measure(ctx, run)
	})
	os.Exit(execute(cli.Context(), program{[]measure.Section{fake("one"), waiting, fake("three")}, os.Stdout, os.Stderr}, os.Args[1:]))
}

// child starts the program, and returns once it says that it waits.
func child(t *testing.T, how, folder string) (*exec.Cmd, *bufio.Scanner) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "--out", folder)
	cmd.Env = append(os.Environ(), asProgram+"="+how)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	until(t, lines, "waiting")
	return cmd, lines
}

// until reads lines up to one.
func until(t *testing.T, lines *bufio.Scanner, want string) {
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == want {
			return
		}
	}
	require.Fail(t, "it ended before it said "+want)
}

func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		folder := t.TempDir()
		cmd, lines := child(t, "patient", folder)
		require.NoError(t, cmd.Process.Signal(s))
		for lines.Scan() { // to its end
		}
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit)
		assert.Equal(t, 128+int(s), exit.ExitCode())
		r, err := results.ReadFile(filepath.Join(folder, "report.json"))
		require.NoError(t, err)
		assert.True(t, r.Interrupted)
		assert.Len(t, r.Sections[1].Tables, 1)
		assert.NotEmpty(t, r.Sections[2].Skipped)
		assert.FileExists(t, filepath.Join(folder, "index.html"))
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	folder := t.TempDir()
	cmd, lines := child(t, "stubborn", folder)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	until(t, lines, "waiting on")
	go func() { // to its end; at once it would be the same signal
		for cmd.Process.Signal(syscall.SIGINT) == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for lines.Scan() {
	}
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.True(t, status.Signaled(), "it was killed by the signal, and did not wait for the section")
	assert.NoFileExists(t, filepath.Join(folder, "report.json"))
}
