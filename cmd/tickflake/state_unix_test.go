//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// printed is every ID that a set of processes ever printed, as read from their pipes.
type printed struct {
	mu  sync.Mutex
	ids map[snowflake.ID]string // by whom
}

// add notes a line that was read with its line break. The last line of a process that
// was killed may be the beginning of an ID, and is none without one.
func (p *printed) add(line, by string) error {
	text, ok := strings.CutSuffix(line, "\n")
	if !ok {
		return nil
	}
	id, err := snowflake.Parse(text)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, twice := p.ids[id]; twice {
		return fmt.Errorf("ID %d of %s was printed by %s before", id, by, other)
	}
	p.ids[id] = by
	return nil
}

// limits watches over the cells of a directory: the highest limits that were seen,
// while the number was not given back, and when it was.
type limits struct {
	store           *directory.Store
	most, givenBack map[int64]time.Time
}

// look returns an error if a limit went down, or a cell was lost. Only the holder
// of a number may lower its limit, by a release.
func (l *limits) look(ctx context.Context) error {
	cells, err := lease.Inspect(ctx, l.store)
	if err != nil {
		return err
	}
	seen := map[int64]bool{}
	for _, c := range cells {
		if c.Err != nil {
			return c.Err
		}
		least := l.most
		if c.State == lease.Released {
			least = l.givenBack
		}
		if c.Limit.Before(least[c.Node]) {
			return fmt.Errorf("limit of node %d, %s, went down from %s to %s", c.Node, c.State, least[c.Node], c.Limit)
		}
		least[c.Node], seen[c.Node] = c.Limit, true
	}
	for node := range l.most {
		if !seen[node] {
			return fmt.Errorf("cell of node %d is gone", node)
		}
	}
	return nil
}

// cover returns an error if an ID lies at or after the limit of its node number: the
// next process could issue it again.
func (l *limits) cover(ctx context.Context, ids map[snowflake.ID]string, layout snowflake.Layout) error {
	last := map[int64]snowflake.ID{}
	for id := range ids {
		decoded, err := layout.Decode(id)
		if err != nil {
			return err
		}
		last[decoded.Node] = max(last[decoded.Node], id)
	}
	for node, id := range last {
		cell, err := lease.InspectNode(ctx, l.store, node)
		if err != nil {
			return err
		}
		if decoded, _ := layout.Decode(id); !decoded.Time.Before(cell.Limit) {
			return fmt.Errorf("%s of %s is not below the limit, %s", decoded, ids[id], cell.Limit)
		}
	}
	return nil
}

// killsEnv sets how often TestKill kills.
const killsEnv = "TICKFLAKE_TEST_KILLS"

// Two processes compete for a directory with two node numbers, and are killed at
// random moments: in the middle of a line, of a claim, of a write.
func TestKill(t *testing.T) {
	kills := int64(30)
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		kills, err = strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
	}
	state := t.TempDir()
	store, err := directory.Open(t.Context(), state)
	require.NoError(t, err)
	all := printed{ids: map[snowflake.ID]string{}}

	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var mu sync.Mutex
	var killed, ended, waited int64
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), uint64(kills)))
			for run := 0; ; run++ {
				mu.Lock()
				enough := killed >= kills
				mu.Unlock()
				if enough || ctx.Err() != nil {
					return
				}
				how, err := killOne(rng, &all, state, fmt.Sprintf("process %d of %d", run, worker))
				if err != nil {
					stop(err)
					return
				}
				mu.Lock()
				switch how {
				case -1:
					killed++
				case 0:
					ended++
				default:
					waited++
				}
				mu.Unlock()
			}
		})
	}
	watch := limits{store, map[int64]time.Time{}, map[int64]time.Time{}}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	looks := time.NewTicker(5 * time.Millisecond)
	defer looks.Stop()
	for running := true; running; {
		select {
		case <-looks.C:
		case <-done:
			running = false
		}
		if err := watch.look(t.Context()); err != nil {
			stop(err)
			break
		}
	}
	<-done
	require.NoError(t, context.Cause(ctx))
	layout, err := snowflake.ParseLayout(killLayout)
	require.NoError(t, err)
	require.NoError(t, watch.cover(t.Context(), all.ids, layout))
	t.Logf("%d killed, %d ended by themselves, %d without a node number; %d IDs, all different, of %d node numbers", killed, ended, waited, len(all.ids), len(watch.most))
	assert.NotEmpty(t, all.ids)
	assert.NotEmpty(t, watch.most)
}

// killLayout has 64 IDs per ms, few enough to remember all of them, and two nodes.
const killLayout = "41/1/6"

// killOne starts a process, kills it at a moment drawn from rng, and returns its exit
// code, which is -1 if that came before its end. A process that is killed while it
// starts prints nothing, one that is killed later has extended its grant a few times.
func killOne(rng *rand.Rand, all *printed, state, name string) (code int, err error) {
	count := "1000000000"
	if rng.IntN(4) == 0 {
		count = "200"
	}
	// The next process would issue borrowed IDs again if it went by the clock.
	strategy := []string{"borrow:2s,wait:10s", "borrow:5s,wait:10s"}[rng.IntN(2)]
	args := []string{"generate", "--layout", killLayout, "--window", "40ms", "--count", count, "--strategy", strategy, "--store", state}
	cmd := exec.Command(binary, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	moment := time.Duration(rng.Int64N(int64(250 * time.Millisecond)))
	if rng.IntN(3) == 0 {
		moment /= 10 // while it starts
	}
	timer := time.AfterFunc(moment, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	for {
		line, readErr := lines.ReadString('\n')
		if err == nil {
			err = all.add(line, name)
		}
		if readErr != nil {
			break
		}
	}
	_ = cmd.Wait()
	if code = cmd.ProcessState.ExitCode(); code > 1 || code == 1 && !strings.Contains(stderr.String(), "no free node number") {
		return code, fmt.Errorf("%s: exit code %d: %s", name, code, stderr.String())
	}
	return code, err
}

// started starts the command, and returns it after it printed its first ID.
func started(t *testing.T, all *printed, args ...string) (cmd *exec.Cmd, out *bufio.Reader, stderr *strings.Builder) {
	t.Helper()
	r, w := pipe(t)
	cmd, stderr = process(t, nil, w, append([]string{"generate", "--count", "1000000000"}, args...)...)
	w.Close()
	out = bufio.NewReaderSize(r, 1<<16)
	line, err := out.ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		require.NoError(t, err, stderr.String())
	}
	require.NoError(t, all.add(line, strings.Join(args, " ")))
	return cmd, out, stderr
}

// drain notes all the rest that a process prints.
func drain(t *testing.T, all *printed, out *bufio.Reader, by string) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		require.NoError(t, all.add(line, by))
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

// After a kill, the next run starts at once with another node number, and with the same
// one when its grant has ended.
func TestRestartAfterKill(t *testing.T) {
	state := t.TempDir()
	all := printed{ids: map[snowflake.ID]string{}}
	cmd, out, _ := started(t, &all, "--layout", "41/10/6", "--window", "300ms", "--store", state)
	require.NoError(t, cmd.Process.Kill())
	drain(t, &all, out, "killed")
	assert.Equal(t, -1, exitCode(cmd))
	assert.Equal(t, lease.Expired, inspect(t, state).State)
	limit := inspect(t, state).Limit

	got := tickflake("generate", "--layout", "41/10/6", "--count", "100", "--store", state)
	require.Equal(t, result{0, got.out, ""}, got)
	for _, line := range got.lines() {
		require.NoError(t, all.add(line+"\n", "next"))
	}
	pinned := tickflake("generate", "--layout", "41/10/6", "--count", "10", "--node", "0", "--strategy", "reject", "--format", "json", "--store", state)
	assert.False(t, records(t, pinned)[0].Time.Before(limit))
}

// stop stops a process, as a debugger or a machine that is put to sleep does.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
}

// resume lets a process that was stopped go on.
func resume(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
}

// In a directory, a process that is stopped keeps its number, but not its time.
func TestStoppedProcess(t *testing.T) {
	state := t.TempDir()
	all := printed{ids: map[snowflake.ID]string{}}
	flags := []string{"--layout", "41/10/6", "--window", "60ms", "--store", state}
	frozen, frozenOut, frozenErr := started(t, &all, append(flags, "--node", "7")...)
	stop(t, frozen)
	require.Eventually(t, func() bool { return inspect(t, state).Limit.Before(time.Now()) }, 10*time.Second, time.Millisecond, "the window is over")

	held := tickflake(append([]string{"generate", "--node", "7", "--timeout", "3s"}, flags...)...)
	assert.Equal(t, 1, held.code)
	assert.Contains(t, held.err, "node number 7 is held by")

	other, otherOut, _ := started(t, &all, flags...)
	resumed := time.Now()
	resume(t, frozen)
	var wg sync.WaitGroup
	for name, out := range map[string]*bufio.Reader{"frozen": frozenOut, "other": otherOut} {
		wg.Go(func() { drain(t, &all, out, name) })
	}
	// It goes on after the stop: with more than the pipe and its buffers held.
	require.Eventually(t, func() bool {
		store, err := directory.Open(t.Context(), state)
		require.NoError(t, err)
		h, err := lease.InspectNode(t.Context(), store, 7)
		require.NoError(t, err)
		return h.Limit.After(resumed)
	}, 10*time.Second, time.Millisecond)
	for _, cmd := range []*exec.Cmd{frozen, other} {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
	}
	wg.Wait()
	assert.Equal(t, 130, exitCode(frozen), frozenErr)
	assert.Equal(t, 130, exitCode(other))
	names, err := filepath.Glob(filepath.Join(state, "node*.cell"))
	require.NoError(t, err)
	assert.Len(t, names, 2)
}
