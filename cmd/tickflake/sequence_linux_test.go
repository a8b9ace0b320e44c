package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onTerminal starts the command with the terminal for its streams, or with another standard
// output, and returns a reader of the terminal's screen.
func onTerminal(t *testing.T, stdout *os.File, args ...string) (cmd *exec.Cmd, screen *os.File) {
	t.Helper()
	terminal, screen := pseudoTerminal(t, 80)
	cmd = exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if stdout != nil {
		cmd.Stdout = stdout
	}
	takeTerminal(cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	terminal.Close()
	return cmd, screen
}

// untilEnd reads a screen until every process has closed its terminal.
func untilEnd(screen io.Reader) string {
	all, _ := io.ReadAll(screen) // the end of a terminal is an error
	return string(all)
}

// The commands that lose numbers ask, and name the numbers.
func TestSequenceAsks(t *testing.T) {
	for line, said := range map[string]struct{ question, done, not string }{
		"sequence set orders --next 500": {
			`^sequence "orders": segmented, .*; the next number is 301\r\nset the next number to 500, so that those from 301 to 499 are never issued\?$`,
			"; the next number is 500\r\n", `tickflake: sequence "orders" was not changed`,
		},
		"sequence delete orders": {
			`^sequence "orders": segmented, .*; the next number is 301\r\nthe numbers from 1 to 300 were granted; a new sequence of this name begins above them\r\ndelete it\?$`,
			`sequence "orders" is deleted; the numbers from 1 to 300 were granted`, `tickflake: sequence "orders" was not deleted`,
		},
	} {
		for answer, code := range map[string]int{"y\n": 0, "Yes\n": 0, "n\n": 1, "\n": 1, "\x04": 1, "\x03": 130} {
			t.Run(line+" "+answer, func(t *testing.T) {
				state := t.TempDir()
				run := on(state)
				require.Zero(t, run("sequence create orders").code)
				require.Zero(t, run("sequence next orders --count 300 --row").code)
				before := contents(t, state)
				cmd, screen := onTerminal(t, nil, append(strings.Fields(line), "--store", state)...)
				shown := bufio.NewReader(screen)
				question, err := shown.ReadString('?')
				require.NoError(t, err)
				assert.Regexp(t, said.question, question)
				_, err = screen.WriteString(answer)
				require.NoError(t, err)
				rest := untilEnd(shown)
				assert.Equal(t, code, exitCode(cmd))
				want := map[int]string{0: said.done, 1: said.not, 130: "tickflake: interrupted"}
				assert.Contains(t, rest, want[code])
				assert.Equal(t, code != 0, assert.ObjectsAreEqual(before, contents(t, state)))
			})
		}
	}
}

// A change that loses no number asks nothing.
func TestSequenceAsksNothing(t *testing.T) {
	run := on(t.TempDir())
	require.Zero(t, run("sequence create orders --max 10").code)
	for _, line := range []string{"sequence set orders --max 20", "sequence set orders --step 5-50", "sequence set orders --next 1"} {
		got := run(line)
		assert.Zero(t, got.code, got.err)
	}
}

// A run that takes long shows its progress on the terminal, and removes it at the end.
func TestProgress(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders").code)
	r, w := pipe(t)
	cmd, screen := onTerminal(t, w, "sequence", "next", "orders", "--count", "1000000000000", "--store", state)
	w.Close()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	shown := bufio.NewReader(screen)
	bar, err := shown.ReadString('%')
	require.NoError(t, err)
	assert.Contains(t, bar, "0%")
	_, err = screen.WriteString("\x03")
	require.NoError(t, err)
	rest := untilEnd(shown)
	assert.Equal(t, 130, exitCode(cmd))
	assert.Regexp(t, `/1000000000000, \d+ numbers/s\)`, rest)
	assert.Regexp(t, `\r\x1b\[2K\r(\x1b\[2K)?tickflake: interrupted; \d+ of 1000000000000 numbers written\r\n$`, rest)
}

// Numbers that go to the terminal are not mixed with a bar.
func TestNoProgressAmongTheNumbers(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders").code)
	cmd, screen := onTerminal(t, nil, "sequence", "next", "orders", "--count", "500000", "--store", state)
	assert.Equal(t, strings.ReplaceAll(numbers(1, 500_000, 1), "\n", "\r\n"), untilEnd(screen))
	assert.Zero(t, exitCode(cmd))
}
