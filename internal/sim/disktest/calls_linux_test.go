package disktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

const patience = 400 * time.Millisecond // of each call that a disk holds up

// TestCallsWhileADiskHangs makes every call of a directory while the disk hangs, and while it begins
// to: each returns when its context ends, few threads stay in the kernel, and a generator goes on
// when the disk is back. What a hanging store does to a lease and a generator is tested there.
func TestCallsWhileADiskHangs(t *testing.T) {
	for name, disk := range Disks {
		t.Run(name, func(t *testing.T) { testHang(t, disk) })
	}
}

func testHang(t *testing.T, disk Disk) {
	goroutines := runtime.NumGoroutine()
	dir, hang := disk(t)
	path, number := filepath.Join(dir, "state"), new(atomic.Int64)
	key := func() string { return fmt.Sprintf("other/%07d", number.Add(1)) }
	store, err := stores.Open(t.Context(), path)
	require.NoError(t, err)
	gen, err := generator.Open(t.Context(), path, generator.WithLogger(slog.New(slog.DiscardHandler)), generator.WithLeaseOptions(lease.WithWindow(300*time.Millisecond)))
	require.NoError(t, err)
	lock := store.Traits().TryLock
	unlock, err := lock(t.Context(), key())
	require.NoError(t, err)
	calls := map[string]func(context.Context) error{
		"stores.Open, new":      func(ctx context.Context) error { _, err := stores.Open(ctx, filepath.Join(path, key())); return err },
		"stores.Open":           func(ctx context.Context) error { _, err := stores.Open(ctx, path); return err },
		"Store.List":            func(ctx context.Context) error { _, err := store.List(ctx, "", "\x7f", 99); return err },
		"Store.Read":            func(ctx context.Context) error { _, err := store.Read(ctx, "node/0000001"); return err },
		"Store.Swap":            func(ctx context.Context) error { _, err := store.Swap(ctx, key(), 0, []byte("value")); return err },
		"Store.Close":           func(context.Context) error { return store.Close() },
		"unlock":                func(context.Context) error { unlock(); return nil },
		"Generator.NextContext": func(ctx context.Context) error { _, err := gen.NextContext(ctx); return err },
		"TryLock": func(ctx context.Context) error {
			unlock, err := lock(ctx, key())
			if err == nil {
				unlock()
			}
			return err
		},
	}
	var all sync.WaitGroup
	hangs := make(chan struct{})
	for name, call := range calls {
		all.Go(func() {
			for last := false; !last; {
				select {
				case <-hangs:
					last = true // it begins while the disk hangs
				default: // it may be busy when the disk begins to hang
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				err := call(ctx) // the test's deadline bounds it
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && !strings.Contains(name, "Next") {
					assert.Regexp(t, path+"|earlier call of the store", err, name)
				}
			}
		})
	}
	back := hang()
	close(hangs)
	all.Wait()

	// Each call that hangs has a thread, and Go ends a process that has 10,000.
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := store.Swap(ctx, key(), 0, []byte("value"))
		assert.Error(t, err)
		_, err = stores.Open(ctx, filepath.Join(path, "new", "one"))
		assert.Error(t, err)
		cancel()
	}
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	assert.Less(t, len(threads), 150)
	back()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		_, err := gen.NextContext(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, gen.Close())
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+3 }, time.Minute, 10*time.Millisecond, "goroutines are left")
}
