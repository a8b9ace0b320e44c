package disktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/disktest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

const (
	patience = 400 * time.Millisecond // of each call that a disk holds up
	slack    = 10 * time.Second
	short    = 300 * time.Millisecond // a window that ends while the disk hangs
)

var (
	quiet = lease.WithLogger(slog.New(slog.DiscardHandler))
	open  = generator.WithLeaseOptions(quiet, lease.WithWindow(short))
)

// hanging is what a call of the table uses; each was made while the disk answered.
type hanging struct {
	path    string
	store   *directory.Store
	keepers chan *lease.Keeper        // to be closed
	gens    chan *generator.Generator // to be closed
	keeper  *lease.Keeper
	gen     *generator.Generator // of keeper
	unlocks chan func()
	key     func() string
}

// call is one call of the public API. It must return when ctx has ended, or after its bound.
type call struct {
	name  string
	once  bool
	bound time.Duration // 0: patience
	do    func(context.Context, *hanging) error
}

var calls = []call{
	{name: "directory.Open", do: func(ctx context.Context, h *hanging) error { _, err := directory.Open(ctx, h.path); return err }},
	{name: "directory.Open of a new directory", do: func(ctx context.Context, h *hanging) error {
		_, err := directory.Open(ctx, filepath.Join(h.path, "new", h.key()))
		return err
	}},
	{name: "stores.Open", do: func(ctx context.Context, h *hanging) error { _, err := stores.Open(ctx, h.path); return err }},
	{name: "Store.List", do: func(ctx context.Context, h *hanging) error { _, err := h.store.List(ctx, "", "\x7f", 99); return err }},
	{name: "Store.Read", do: func(ctx context.Context, h *hanging) error { _, err := h.store.Read(ctx, "node/0000001"); return err }},
	{name: "Store.Swap", do: func(ctx context.Context, h *hanging) error {
		_, err := h.store.Swap(ctx, h.key(), 0, []byte("value"))
		return err
	}},
	{name: "Store.TryLock", do: func(ctx context.Context, h *hanging) error {
		unlock, err := h.store.TryLock(ctx, h.key())
		if err == nil {
			unlock()
		}
		return err
	}},
	{name: "unlock", once: true, do: func(_ context.Context, h *hanging) error { (<-h.unlocks)(); return nil }},
	{name: "Store.Close", do: func(_ context.Context, h *hanging) error { return h.store.Close() }},
	{name: "lease.Claim", do: func(ctx context.Context, h *hanging) error {
		k, err := lease.Claim(ctx, h.store, quiet)
		if err == nil {
			err = k.CloseContext(ctx)
		}
		return err
	}},
	{name: "lease.Inspect", do: func(ctx context.Context, h *hanging) error { _, err := lease.Inspect(ctx, h.store); return err }},
	{name: "lease.Reserve", do: func(ctx context.Context, h *hanging) error {
		return lease.Reserve(ctx, h.store, 900, 900, time.Now().Add(time.Hour))
	}},
	{name: "lease.ForceRelease", once: true, do: func(ctx context.Context, h *hanging) error { return lease.ForceRelease(ctx, h.store, 999) }},
	{name: "Keeper.CloseContext", once: true, do: func(ctx context.Context, h *hanging) error { return (<-h.keepers).CloseContext(ctx) }},
	// Its few operations each have the timeout of the lease.
	{name: "Keeper.Close", once: true, bound: 3 * patience, do: func(_ context.Context, h *hanging) error { return (<-h.keepers).Close() }},
	{name: "Keeper.Restored", once: true, do: func(ctx context.Context, h *hanging) error {
		k := <-h.keepers
		err := k.Restored(ctx)
		return errors.Join(err, k.CloseContext(ctx))
	}},
	{name: "generator.Open", do: func(ctx context.Context, h *hanging) error {
		g, err := generator.Open(ctx, h.path, open)
		if err == nil {
			err = g.CloseContext(ctx)
		}
		return err
	}},
	{name: "Generator.NextContext", do: func(ctx context.Context, h *hanging) error { _, err := h.gen.NextContext(ctx); return err }},
	{name: "Generator.Next", do: func(_ context.Context, h *hanging) error { _, err := h.gen.Next(); return err }},
	{name: "Generator.CloseContext", once: true, do: func(ctx context.Context, h *hanging) error { return (<-h.gens).CloseContext(ctx) }},
	{name: "Generator.Close", once: true, bound: 3 * patience, do: func(_ context.Context, h *hanging) error { return (<-h.gens).Close() }},
}

// TestCallsWhileADiskHangs is the table of calls: each begins while the disk hangs, or is
// busy when it begins to hang.
func TestCallsWhileADiskHangs(t *testing.T) {
	for _, kind := range disktest.Kinds {
		for _, when := range []string{"before", "meanwhile"} {
			t.Run(string(kind)+"/"+when, func(t *testing.T) { testHang(t, disktest.New(t, kind), when == "before") })
		}
	}
}

func testHang(t *testing.T, disk *disktest.Disk, before bool) {
	goroutines := runtime.NumGoroutine()
	h := prepare(t, disk, before)
	var all, begun sync.WaitGroup
	hangs := make(chan struct{})
	for _, c := range calls {
		begun.Add(1)
		all.Go(func() {
			if !before && !c.once {
				c.try(t, h)
			}
			begun.Done()
			for !before && !c.once && !over(hangs) {
				c.try(t, h)
			}
			<-hangs
			c.try(t, h)
		})
	}
	begun.Wait()
	disk.Hang()
	if !before { // the keepers' extensions hang, and then those of others are closed
		assert.Eventually(t, func() bool { return h.keeper.Stats().Remaining < 0 }, time.Minute, time.Millisecond)
	}
	close(hangs)
	all.Wait()
	tryOften(t, h)
	disk.Back()

	// The generator that was open goes on, so do new ones, and what hung has ended.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		_, err := h.gen.NextContext(ctx)
		require.NoError(t, err)
	}
	for _, c := range calls {
		if !c.once {
			assert.NoErrorf(t, c.do(ctx, h), "%s after the disk is back", c.name)
		}
	}
	require.NoError(t, h.gen.Close())
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+3 }, time.Minute, 10*time.Millisecond, "goroutines are left")
	assert.Eventually(t, func() bool { return len(openFiles(t, h.path)) == 0 }, time.Minute, 10*time.Millisecond, "files are left open")
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// try makes one call, and checks that it returns. The error of a deadline must name the
// directory, or say that the call waited for an earlier one.
func (c call) try(t *testing.T, h *hanging) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	err := c.do(ctx, h)
	took := time.Since(start)
	assert.LessOrEqual(t, took, max(c.bound, patience)+slack, c.name)
	if errors.Is(err, context.DeadlineExceeded) && !strings.Contains(c.name, "Next") {
		assert.Regexp(t, regexp.QuoteMeta(h.path)+"|earlier call of the store", err, c.name)
	}
	if testing.Verbose() && took > patience/2 {
		t.Logf("%-32s %8s  %v", c.name, took.Round(time.Millisecond), err)
	}
}

// prepare opens all that the calls need. If idle, the keepers that are closed have nothing
// to do; else they are extending when they are closed.
func prepare(t *testing.T, disk *disktest.Disk, idle bool) *hanging {
	window := short
	if idle {
		window = time.Hour
	}
	number := new(atomic.Int64)
	h := &hanging{
		path:    filepath.Join(disk.Dir, "state"),
		keepers: make(chan *lease.Keeper, 3), gens: make(chan *generator.Generator, 2), unlocks: make(chan func(), 1),
		key: func() string { return fmt.Sprintf("other/%07d", number.Add(1)) },
	}
	ctx, options := t.Context(), []lease.Option{quiet, lease.WithWindow(window), lease.WithTimeout(patience)}
	var err error
	h.store, err = directory.Open(ctx, h.path)
	require.NoError(t, err)
	for range cap(h.keepers) {
		k, err := lease.Claim(ctx, h.store, options...)
		require.NoError(t, err)
		h.keepers <- k
	}
	for range cap(h.gens) {
		g, err := generator.Open(ctx, h.path, generator.WithLeaseOptions(options...))
		require.NoError(t, err)
		h.gens <- g
	}
	h.keeper, err = lease.Claim(ctx, h.store, quiet, lease.WithWindow(short))
	require.NoError(t, err)
	h.gen, err = generator.New(generator.WithLease(h.keeper))
	require.NoError(t, err)
	unlock, err := h.store.TryLock(ctx, h.key())
	require.NoError(t, err)
	h.unlocks <- unlock
	return h
}

// tryOften makes hundreds of calls that give up. Few of them may be left in the kernel, since
// each has a thread, and Go ends a process that has 10,000.
func tryOften(t *testing.T, h *hanging) {
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := h.store.Swap(ctx, h.key(), 0, []byte("value"))
		assert.Error(t, err)
		_, err = directory.Open(ctx, filepath.Join(h.path, "new", "one"))
		assert.Error(t, err)
		cancel()
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "Threads:")
	threads, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	assert.Less(t, threads, 150, "threads of this process")
}

// openFiles returns the open files below a directory.
func openFiles(t *testing.T, dir string) (names []string) {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names
}
