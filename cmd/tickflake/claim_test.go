package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// hold holds a node number in a directory, as another process would.
func hold(t *testing.T, dir string, options ...lease.Option) *lease.Keeper {
	t.Helper()
	store, err := directory.Open(t.Context(), dir)
	require.NoError(t, err)
	k, err := lease.Claim(t.Context(), store, append([]lease.Option{lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, k.Close()) })
	return k
}

// inspect returns the only node number in a directory that was ever claimed.
func inspect(t *testing.T, dir string) lease.Holding {
	t.Helper()
	store, err := directory.Open(t.Context(), dir)
	require.NoError(t, err)
	all, err := lease.Inspect(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// Runs with one node number in one state directory are one ascending sequence, as
// close to each other as they come.
func TestRunsNeverRepeat(t *testing.T) {
	for _, args := range [][]string{{"--node", "7"}, {"--layout", "41/0/12"}, {"--layout", "time=41,sequence=12,tick=10ms", "--strategy", "borrow:1s"}} {
		state := t.TempDir()
		last := snowflake.ID(-1)
		for range 50 {
			got := tickflake(append(args, "generate", "--count", "10", "--store", state)...)
			require.Equal(t, result{0, got.out, ""}, got)
			for _, line := range got.lines() {
				id, err := snowflake.Parse(line)
				require.NoError(t, err)
				require.Greater(t, id, last, "%v", args)
				last = id
			}
		}
	}
}

func TestNodeOfAnotherRunIsNotTaken(t *testing.T) {
	state := t.TempDir()
	other := hold(t, state, lease.WithOwner("the other"))
	require.Zero(t, other.Node())

	got := records(t, tickflake("generate", "--format", "json", "--store", state))
	assert.Equal(t, int64(1), got[0].Node)

	held := tickflake("generate", "--node", "0", "--timeout", "3s", "--store", state)
	assert.Equal(t, result{1, "", "tickflake: gave up after 3s (--timeout): node number 0 is held by the other: end that, or give each process a number of its own\n"}, held)

	require.NoError(t, other.Close())
	got = records(t, tickflake("generate", "--format", "json", "--node", "0", "--store", state))
	assert.Zero(t, got[0].Node)
}

func TestAllNodesAreTaken(t *testing.T) {
	layout, err := snowflake.ParseLayout("41/0/12")
	require.NoError(t, err)
	state := t.TempDir()
	hold(t, state, lease.WithLayout(layout))
	got := tickflake("generate", "--layout", "41/0/12", "--timeout", "3s", "--store", state)
	assert.Equal(t, 1, got.code)
	assert.Truef(t, matches("tickflake: gave up after 3s (--timeout): no free node number: 1 of 1 are held*\n", got.err), got.err)
}

// A number that is given back while a run waits for it is taken.
func TestNodeIsWaitedFor(t *testing.T) {
	state := t.TempDir()
	other := hold(t, state)
	ended := make(chan result)
	go func() { ended <- tickflake("generate", "--node", "0", "--timeout", "1m", "--store", state) }()
	require.NoError(t, other.Close())
	got := <-ended
	assert.Equal(t, result{0, got.out, ""}, got)
}

// However a run ends, its node number is free at once.
func TestNodeIsGivenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		room  int // bytes, before the output fails
		write error
		args  string
		code  int
	}{
		"done":        {1000, nil, "generate --count 10", 0},
		"rejected":    {1 << 20, nil, "generate --count 100000 --strategy reject --layout time=41,sequence=12,tick=1h", 1},
		"broken pipe": {100, syscall.EPIPE, "generate --count 1000000", 0},
		"full disk":   {100, errors.New("disk full"), "generate --count 1000000", 1},
		"greeting":    {0, errors.New("disk full"), "serve --resp off --http 127.0.0.1:0 --grpc off", 0}, // which need not be read
		"terminated":  {1000, nil, "generate --count 10 --strategy wait --layout time=41,sequence=1,tick=1h", 143},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			out := &eventWriter{failingWriter{tt.room, tt.write}, func() {
				if tt.code == 143 || name == "greeting" {
					cancel(cli.Interruption{Signal: syscall.SIGTERM})
				}
			}}
			state := t.TempDir()
			var stderr strings.Builder
			code := run(ctx, append(strings.Fields(tt.args), "--store", state), strings.NewReader(""), out, &stderr)
			assert.Equal(t, tt.code, code, stderr.String())
			assert.Equal(t, lease.Released, inspect(t, state).State)
		})
	}
}

// eventWriter calls written after each write.
type eventWriter struct {
	failingWriter
	written func()
}

func (w *eventWriter) Write(p []byte) (int, error) {
	defer w.written()
	return w.failingWriter.Write(p)
}

func TestOtherLayoutIsRefused(t *testing.T) {
	state := t.TempDir()
	require.Zero(t, tickflake("generate", "--store", state).code)
	before := inspect(t, state)
	got := tickflake("generate", "--layout", "twitter", "--store", state)
	assert.Equal(t, 1, got.code)
	assert.Truef(t, matches("tickflake: store holds cells for the layout *epoch=2025-01-01T00:00:00Z*, and not for *epoch=2010-11-04T01:42:54.657Z*: use that layout, or, for IDs that never meet those, another namespace\n", got.err), got.err)
	assert.Equal(t, before, inspect(t, state))

	require.Zero(t, tickflake("generate", "--layout", "twitter", "--store", "file:"+state+"?namespace=birds").code)
	assert.Equal(t, "birds", filepath.Base(filepath.Dir(oneFile(t, filepath.Join(state, "*", "node*.cell")))))
	assert.Equal(t, before, inspect(t, state))
}

// By default layouts are kept apart, but not those that can issue the same IDs.
func TestLayoutsByDefault(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, layout := range []string{"tickflake", "twitter", "sonyflake", "41/10/12", "javascript"} {
		require.Zero(t, tickflake("generate", "--layout", layout, "--count", "3").code)
		list := tickflake("lease", "list", "--layout", layout)
		assert.Equal(t, result{0, list.out, ""}, list)
		assert.Len(t, list.lines(), 2)
	}
	for _, tt := range []struct{ a, b, want string }{
		{"tickflake", "41/10/12", "node10-sequence12-tick1ms-epoch20250101T000000Z"},
		{"twitter", "time=40,worker=10,sequence=12,epoch=2010-11-04T01:42:54.657Z", "node10-sequence12-tick1ms-epoch20101104T014254.657Z"},
		{"time=41,sequence=12", "41/0/12", "node0-sequence12-tick1ms-epoch20250101T000000Z"},
		{"time=39,sequence=8,node=16,tick=100us", "time=38,sequence=8,machine=16,tick=100us", "sequence8-node16-tick100us-epoch20250101T000000Z"},
	} {
		for _, spec := range []string{tt.a, tt.b} {
			layout, err := snowflake.ParseLayout(spec)
			require.NoError(t, err)
			assert.Equal(t, tt.want, layoutDirectory(layout), spec)
		}
	}
}

// The last run with a node number was on a clock that is an hour ahead of this one.
func TestClockSetBackBetweenRuns(t *testing.T) {
	const hour = time.Hour
	state := t.TempDir()
	k := hold(t, state, lease.WithClock(clocktest.NewVirtual(time.Now().Add(hour))), lease.WithPolling())
	gen, err := generator.New(generator.WithLease(k))
	require.NoError(t, err)
	last, err := gen.Next()
	require.NoError(t, err)
	require.NoError(t, gen.Close())

	for _, strategy := range []string{"reject", "wait:10ms"} {
		got := tickflake("generate", "--node", "0", "--strategy", strategy, "--store", state)
		assert.Equal(t, 1, got.code)
		assert.Truef(t, matches("tickflake: clock is 59m*s behind the last issued ID (limit *; 0 of 1 IDs written\n", got.err), got.err)
	}
	got := tickflake("generate", "--node", "0", "--strategy", "borrow:2h", "--store", state)
	require.Equal(t, result{0, got.out, ""}, got)
	id, err := snowflake.Parse(got.lines()[0])
	require.NoError(t, err)
	assert.Greater(t, id, last)

	// Without a number of its own, a run need not go back behind that.
	free := records(t, tickflake("generate", "--format", "json", "--store", state))
	assert.Equal(t, int64(1), free[0].Node)
	assert.WithinDuration(t, time.Now(), free[0].Time, time.Minute)
}

func TestDamagedStateIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "garbage": "\x00garbage", "of a later version": "tickflake-cell 2 crc64=0 what=ever\n"} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			require.Zero(t, tickflake("generate", "--store", state).code)
			cell := filepath.Join(state, "node+0000000.cell")
			require.NoError(t, os.WriteFile(cell, []byte(content), 0o600))
			got := tickflake("generate", "--store", state, "--timeout", "1m", "--node", "0")
			assert.Equal(t, 1, got.code)
			assert.Contains(t, got.err, filepath.Base(cell))
			assert.Empty(t, got.out)
			// Another number is as good, and the log tells of the damaged one.
			got = tickflake("generate", "--store", state, "--format", "json")
			assert.Equal(t, 0, got.code)
			assert.Contains(t, got.out, `"node":1,`)
			assert.Contains(t, got.err, filepath.Base(cell))
			is, err := os.ReadFile(cell)
			require.NoError(t, err)
			assert.Equal(t, content, string(is))
		})
	}
}

func TestNoHome(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	t.Setenv("LocalAppData", "")
	got := tickflake("generate")
	assert.Equal(t, 1, got.code)
	assert.Truef(t, matches("tickflake: state directory *; --store names another directory or a store\n", got.err), got.err)
	assert.Zero(t, tickflake("generate", "--store", t.TempDir()).code)
	assert.Zero(t, tickflake("generate", "--no-state").code)
}

func oneFile(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, names, 1, pattern)
	return names[0]
}
