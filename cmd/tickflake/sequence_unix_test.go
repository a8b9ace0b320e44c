//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/directory"
)

// sequenceOf returns the state of the sequence orders.
func sequenceOf(t *testing.T, state string) sequence.Info {
	t.Helper()
	store, err := directory.Open(t.Context(), state)
	require.NoError(t, err)
	defer store.Close()
	info, err := sequence.Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	return info
}

// endless starts a command that takes numbers without an end, and returns it after it printed
// the first, which is returned too.
func endless(t *testing.T, state string) (cmd *exec.Cmd, out *bufio.Reader, r *os.File, stderr *strings.Builder, first int64) {
	t.Helper()
	r, w := pipe(t)
	cmd, stderr = process(t, nil, w, "sequence", "next", "orders", "--count", "1000000000000", "--store", state)
	w.Close()
	out = bufio.NewReader(r)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	first, err = strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
	require.NoError(t, err)
	return cmd, out, r, stderr, first
}

// follow reads the numbers that come after last, checks that each is the next, and returns the
// last one. Half a number at the end, of a process that was killed, is none.
func follow(t *testing.T, out *bufio.Reader, last int64) int64 {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if err == io.EOF {
			return last
		}
		require.NoError(t, err)
		last++
		if line != strconv.FormatInt(last, 10)+"\n" {
			t.Fatalf("%q, want %d", line, last)
		}
	}
}

// A run that a signal ends prints complete lines and gives all other numbers back.
func TestSignalEndsNextWithoutAGap(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		for _, mode := range []string{"segmented", "ordered"} {
			t.Run(fmt.Sprint(signal, " ", mode), func(t *testing.T) {
				state := t.TempDir()
				require.Zero(t, on(state)("sequence create orders --mode "+mode).code)
				cmd, out, _, stderr, first := endless(t, state)
				require.Equal(t, int64(1), first)
				require.NoError(t, cmd.Process.Signal(signal))
				last := follow(t, out, first)
				assert.Equal(t, code, exitCode(cmd))
				assert.Regexp(t, fmt.Sprintf(`^tickflake: \w+; %d of 1000000000000 numbers written\n$`, last), stderr.String())
				info := sequenceOf(t, state)
				if mode == "segmented" {
					assert.Equal(t, last+1, info.Next)
				} else {
					// The write that the signal came upon may have taken a number.
					assert.Contains(t, []int64{last + 1, last + 2}, info.Next)
				}
			})
		}
	}
}

// The reader of a closed pipe loses the numbers in the pipe, and no others are lost.
func TestClosedPipeEndsNext(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders").code)
	cmd, _, r, stderr, first := endless(t, state)
	require.Equal(t, int64(1), first)
	r.Close()
	assert.Zero(t, exitCode(cmd))
	assert.Empty(t, stderr.String())
	const buffers = 2 * command.BufferSize / len("1\n") // of the pipe and of the command
	assert.LessOrEqual(t, sequenceOf(t, state).Next, int64(2*buffers))
}

// The numbers of a run that was killed are not issued again.
func TestKillOfNext(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders --step 10-100").code)
	last := int64(0)
	for range 5 {
		cmd, out, _, _, first := endless(t, state)
		require.Greater(t, first, last)
		assert.LessOrEqual(t, first-last, int64(2*100+2*command.BufferSize/2), "two segments, and the numbers in the buffers")
		require.NoError(t, cmd.Process.Kill())
		last = follow(t, out, first)
		assert.Equal(t, -1, exitCode(cmd))
		assert.Greater(t, sequenceOf(t, state).Next, last)
	}
}

func TestClosedOutputTakesNoNumber(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, on(state)("sequence create orders").code)
	before := contents(t, state)
	cmd := exec.Command("/bin/sh", "-c", `exec "$0" sequence next orders --store "$1" >&-`, binary, state)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	assert.Equal(t, 1, exitCode(cmd))
	assert.Equal(t, "tickflake: standard output is closed, so the numbers would be lost; to discard them, use > /dev/null\n", stderr.String())
	assert.Equal(t, before, contents(t, state))
}
