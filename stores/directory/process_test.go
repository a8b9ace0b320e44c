//go:build unix

package directory_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

// The test binary is also a process that counts up the number in the cell node/0000007,
// and prints every number that Swap has acknowledged, until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("DIRECTORY_TEST_COUNT"); path != "" {
		fmt.Println("error", count(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func count(path string) error {
	s, err := directory.Open(context.Background(), path)
	if err != nil {
		return err
	}
	for {
		cell, err := s.Read(context.Background(), "node/0000007")
		if err != nil {
			return err
		}
		n := 0
		if cell.Version > 0 {
			if n, err = strconv.Atoi(string(cell.Value)); err != nil {
				return err
			}
		}
		next, err := swap(context.Background(), s, cell, []byte(strconv.Itoa(n+1)))
		if errors.Is(err, stores.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println("did", string(next.Value))
	}
}

// child is such a process.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, path string) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{Cmd: exec.Command(self)}
	c.Env = append(os.Environ(), "DIRECTORY_TEST_COUNT="+path)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(out)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// next returns what the child has acknowledged next, or false when it has ended.
func (c *child) next(t *testing.T) (int, bool) {
	t.Helper()
	if c.lines.Scan() {
		did, ok := strings.CutPrefix(c.lines.Text(), "did ")
		require.True(t, ok, "the child says: %s", c.lines.Text())
		n, err := strconv.Atoi(did)
		return n, err == nil // or the line was cut off
	}
	return 0, false
}

// Two processes count up one number and are killed at any moment, again and again.
// Every number is acknowledged to one of them at most, and none is lost.
func TestKilledProcesses(t *testing.T) {
	lives := 60
	if testing.Short() {
		lives = 10
	}
	path := filepath.Join(t.TempDir(), "state")
	s, err := directory.Open(context.Background(), path)
	require.NoError(t, err)
	seen := make(map[int]bool)
	highest := 0
	note := func(n int) {
		require.False(t, seen[n], "%d was acknowledged twice", n)
		seen[n] = true
		highest = max(highest, n)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range lives {
		children := []*child{start(t, path), start(t, path)}
		for _, c := range children {
			if n, ok := c.next(t); ok {
				note(n)
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(8 * time.Millisecond)))) // the moment, not a wait for anything
		for _, c := range children {
			require.NoError(t, c.Process.Signal(syscall.SIGKILL))
		}
		for _, c := range children {
			for n, ok := c.next(t); ok; n, ok = c.next(t) {
				note(n)
			}
			_ = c.Wait()
		}
		cell, err := s.Read(t.Context(), "node/0000007")
		require.NoError(t, err)
		n, err := strconv.Atoi(string(cell.Value))
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, highest, "an acknowledged write was lost")
	}
	t.Logf("%d writes acknowledged in %d lives of two processes", len(seen), lives)
	_, err = directory.Open(context.Background(), path)
	require.NoError(t, err)
	temps, err := filepath.Glob(filepath.Join(path, "*.tmp"))
	require.NoError(t, err)
	assert.Empty(t, temps)
}
