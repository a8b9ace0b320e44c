package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// syncFault is what happens to a process at its nth system call of a kind.
type syncFault struct {
	call, fault string
	nth         int
}

func (f syncFault) String() string { return fmt.Sprintf("%s %d: %s", f.call, f.nth, f.fault) }

// syncFaults are those at every step by which a cell gets onto the disk: the file is
// synced, renamed, and the directory synced. A process takes these a few times.
func syncFaults() (all []syncFault) {
	for nth := 1; nth <= 9; nth++ {
		for _, call := range []string{"fsync", "renameat"} {
			for _, fault := range []string{"signal=SIGKILL", "error=EIO", "error=ENOSPC"} {
				all = append(all, syncFault{call, fault, nth})
			}
		}
	}
	return all
}

// run runs a process that meets the fault, and returns what came of it.
func (f syncFault) run(strace string, all *printed, state string) (code int, stderr string, err error) {
	cmd := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+f.call,
		"-e", fmt.Sprintf("inject=%s:%s:when=%d", f.call, f.fault, f.nth),
		binary, "generate", "--layout", killLayout, "--window", "40ms", "--count", "20000", "--strategy", "borrow:2s,wait:10s", "--state", state)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	lines := bufio.NewReader(out)
	for {
		line, readErr := lines.ReadString('\n')
		if err == nil {
			err = all.add(line, f.String())
		}
		if readErr != nil {
			break
		}
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), said.String(), err
}

// Two processes compete for a directory with two node numbers, and each is killed, or
// told that the disk fails or is full, at one of the calls that put a cell onto the disk.
func TestFaultsAtSyncs(t *testing.T) {
	strace := servertest.Find(t, "strace", "strace")
	state := t.TempDir()
	store, err := directory.Open(state)
	require.NoError(t, err)
	layout, err := snowflake.ParseLayout(killLayout)
	require.NoError(t, err)
	all := printed{ids: map[snowflake.ID]string{}}
	watch := limits{store, map[int64]time.Time{}, map[int64]time.Time{}}
	outcomes := map[string]int{}
	var mu sync.Mutex
	for _, f := range syncFaults() {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				code, stderr, err := f.run(strace, &all, state)
				assert.NoError(t, err, "%s", f)
				// An error says what failed; a file that was left half-way is no error of the next.
				ok := code == 0 || code == -1 && strings.HasPrefix(f.fault, "signal") ||
					code == 1 && (strings.Contains(stderr, "input/output error") || strings.Contains(stderr, "no space left on device") || strings.Contains(stderr, "no free node number"))
				assert.True(t, ok, "%s: exit code %d: %s", f, code, stderr)
				mu.Lock()
				defer mu.Unlock()
				outcomes[fmt.Sprintf("%s %d", f.fault, code)]++
			})
		}
		both.Wait()
		require.NoError(t, watch.look(t.Context()), "%s", f)
	}
	require.NoError(t, watch.cover(t.Context(), all.ids, layout))
	t.Logf("%v; %d IDs, all different", outcomes, len(all.ids))
	assert.NotEmpty(t, all.ids)
	assert.Positive(t, outcomes["signal=SIGKILL -1"], "somebody was killed")
	assert.Positive(t, outcomes["error=EIO 1"], "somebody failed")
}
