//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longScript returns the name of a script that is simulated for minutes.
func longScript(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "long.txt")
	require.NoError(t, os.WriteFile(name, []byte("strategy wait; callers 2; seed 3;"+strings.Repeat("ids 1000000;", 20)), 0o600))
	return name
}

func TestSignalEndsChaos(t *testing.T) {
	for signal, want := range map[syscall.Signal]struct {
		code int
		note string
	}{
		syscall.SIGINT:  {130, "tickflake: interrupted; 0 of 1 runs done\n"},
		syscall.SIGTERM: {143, "tickflake: terminated; 0 of 1 runs done\n"},
	} {
		r, w := pipe(t)
		cmd, stderr := process(t, nil, w, "chaos", "--script", longScript(t), "--trace")
		w.Close()
		out := bufio.NewReader(r)
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		assert.Regexp(t, `^   1  caller \d: begins `, line)
		require.NoError(t, cmd.Process.Signal(signal))
		_, err = io.Copy(io.Discard, out)
		require.NoError(t, err)
		assert.Equal(t, want.code, exitCode(cmd))
		assert.Equal(t, want.note, stderr.String())
	}
}

// As "| head" does it.
func TestClosedPipeEndsChaos(t *testing.T) {
	for _, args := range [][]string{
		{"chaos", "--script", longScript(t), "--trace"},
		{"chaos", "--strategy", "all", "--clock", "all"},
		{"chaos", "--strategy", "all", "--clock", "all", "--format", "json"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r, w := pipe(t)
			cmd, stderr := process(t, nil, w, args...)
			w.Close()
			_, err := bufio.NewReader(r).ReadString('\n')
			require.NoError(t, err)
			r.Close()
			assert.Equal(t, 0, exitCode(cmd))
			assert.Empty(t, stderr.String())
		})
	}
}

// Two processes that know the seed only print the same bytes.
func TestSameSeedSameBytes(t *testing.T) {
	for _, args := range []string{"--seeds 1 --from 4711 --trace", "--seeds 1 --from 4711 --format json", "--seeds 500 --format junit"} {
		var outs [2]string
		for i := range outs {
			var out strings.Builder
			cmd, _ := process(t, nil, &out, append([]string{"chaos"}, strings.Fields(args)...)...)
			assert.Equal(t, 0, exitCode(cmd))
			outs[i] = out.String()
		}
		assert.NotEmpty(t, outs[0])
		assert.Equal(t, outs[0], outs[1], args)
	}
}
