package chaos_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
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
	store, err := directory.Open(context.Background(), path)
	return &files{Store: store}, err
}

func (f *files) TryLock(ctx context.Context, key string) (func(), error) {
	unlock, err := f.Store.TryLock(ctx, key)
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
func inDirectory(t testing.TB) func() (func() (stores.Store, error), error) {
	return func() (func() (stores.Store, error), error) {
		path := t.TempDir()
		return func() (stores.Store, error) { return openFiles(path) }, nil
	}
}

// silent keeps the log of what happens to leases out of the tests' output.
var silent = lease.WithLogger(slog.New(slog.DiscardHandler))

// tenth is the node number for tests that need a certain one.
var tenth = lease.WithNode(lease.NodeNumber(9))

// claimPolled claims a lease without a goroutine, for a process on a clock of a kind:
// the test drives it by Poll, and the clock polls it when it is waited for. Its store has
// a minute, because the disk may be busy.
func claimPolled(store stores.Store, clock *clocktest.Virtual, kind generatortest.ClockKind, options ...lease.Option) (*lease.Keeper, error) {
	polled := &leasetest.PolledClock{Virtual: clock}
	options = append([]lease.Option{lease.WithClock(kind.Of(polled)), lease.WithLayout(layout()), lease.WithPolling(), lease.WithTimeout(time.Minute), silent}, options...)
	keeper, err := lease.Claim(context.Background(), store, options...)
	if err == nil {
		polled.Keep(keeper)
	}
	return keeper, err
}

// tickOf is when the tick of an ID begins.
func tickOf(t require.TestingT, id snowflake.ID) time.Time {
	d, err := layout().Decode(id)
	require.NoError(t, err)
	return d.Time
}
