//go:build unix

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell returns how to run a script, which must write its process's id to the file pid
// when it is ready.
func shell(t *testing.T, script string) Config {
	dir := t.TempDir()
	return Config{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir,
		Ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "pid"))
			return err
		}}
}

func pidOf(t *testing.T, c Config) int {
	text, err := os.ReadFile(filepath.Join(c.Dir, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// wait is that of a server that goes on until it is told otherwise, without children.
const wait = "echo $$ > pid.new; mv pid.new pid; while :; do read line < fifo; done"

func TestStopAsks(t *testing.T) {
	// Its steps are short: a signal just before one that blocks would be seen after it.
	c := shell(t, "trap 'echo asked; exit 0' QUIT; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.01; done")
	c.Quit = syscall.SIGQUIT
	p, err := Start(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, p.Stop())
	assert.Contains(t, p.Output(), "asked\n")
	assert.Zero(t, p.PID())
	require.NoError(t, p.Stop(), "which does nothing")
}

func TestStopKillsWhatStays(t *testing.T) {
	defer func(before time.Duration) { quitWait = before }(quitWait)
	quitWait = 10 * time.Millisecond
	c := shell(t, "trap '' QUIT; mkfifo fifo; "+wait)
	c.Quit = syscall.SIGQUIT
	p, err := Start(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, p.Stop())
	assert.ErrorIs(t, syscall.Kill(pidOf(t, c), 0), syscall.ESRCH)
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shell(t, "mkfifo fifo; "+wait)
	there := c.Ready
	c.Ready = func(context.Context) error {
		if there(ctx) == nil {
			cancel()
		}
		return errors.New("it never is")
	}
	p, err := Start(ctx, c)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Nil(t, p)
	assert.ErrorIs(t, syscall.Kill(pidOf(t, c), 0), syscall.ESRCH)
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shell(t, "mkfifo fifo; "+wait)
	ended := make(chan error)
	go func() {
		_, err := Run(ctx, c)
		ended <- err
	}()
	for c.Ready(ctx) != nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
	assert.ErrorIs(t, syscall.Kill(pidOf(t, c), 0), syscall.ESRCH)
}

func TestMissing(t *testing.T) {
	_, err := Find("no-such-server", "its-package", "/nowhere/*/bin")
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "its-package", missing.Package)
	assert.EqualError(t, err, "no-such-server is not installed; on Debian or Ubuntu: apt-get install its-package")
}

// Nobody who asks is given a port that another has in mind.
func TestPort(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := Port()
		require.NoError(t, err)
		assert.False(t, seen[port], "%d twice", port)
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		require.NoError(t, err, "it is free for the server")
		require.NoError(t, l.Close())
		if runtime.GOOS == "linux" {
			_, err = net.Listen("tcp", fmt.Sprint("127.0.0.2:", port))
			assert.Error(t, err, "another process would be given it")
		}
	}
}
