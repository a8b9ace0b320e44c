package chaos_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// files is one process's Store on the files of a directory. It can die as a process
// does, whose locks the operating system frees.
type files struct {
	*directory.Store
	mu      sync.Mutex
	unlocks []func()
}

func openFiles(path string) (*files, error) {
	store, err := directory.Open(path)
	return &files{Store: store}, err
}

func (f *files) TryLock(ctx context.Context, node int64) (func(), error) {
	unlock, err := f.Store.TryLock(ctx, node)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unlocks = append(f.unlocks, unlock)
	}
	return unlock, err
}

// Crash frees the locks.
func (f *files) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, unlock := range f.unlocks {
		unlock()
	}
	f.unlocks = nil
}

// inDirectory gives each script a directory of its own.
func inDirectory(t testing.TB) func() (func() (lease.Store, error), error) {
	return func() (func() (lease.Store, error), error) {
		path := t.TempDir()
		return func() (lease.Store, error) { return openFiles(path) }, nil
	}
}

// silent keeps the log of what happens to leases out of the tests' output.
var silent = lease.WithLogger(slog.New(slog.DiscardHandler))

// tenth is the node number for tests that need a certain one.
var tenth = lease.WithNode(lease.NodeNumber(9))

// claimPolled claims a lease without a goroutine: the test drives it. Its store has a
// minute, because the disk may be busy.
func claimPolled(store lease.Store, clock monoclock.Interface, options ...lease.Option) (*lease.Keeper, error) {
	options = append([]lease.Option{lease.WithClock(clock), lease.WithLayout(layout()), lease.WithPolling(), lease.WithTimeout(time.Minute), silent}, options...)
	return lease.Claim(context.Background(), store, options...)
}

// tickOf is when the tick of an ID begins.
func tickOf(t require.TestingT, id snowflake.ID) time.Time {
	d, err := layout().Decode(id)
	require.NoError(t, err)
	return d.Time
}
