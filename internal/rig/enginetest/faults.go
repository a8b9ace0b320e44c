package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// mortal is the store of a run until it crashes. Then no operation begins.
type mortal struct {
	stores.Store
	dead atomic.Bool
}

var errCrashed = errors.New("the process has crashed")

func (m *mortal) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if m.dead.Load() {
		return nil, errCrashed
	}
	return m.Store.List(ctx, from, to, limit)
}

func (m *mortal) Read(ctx context.Context, key string) (stores.Cell, error) {
	if m.dead.Load() {
		return stores.Cell{}, errCrashed
	}
	return m.Store.Read(ctx, key)
}

func (m *mortal) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if m.dead.Load() {
		return 0, errCrashed
	}
	return m.Store.Swap(ctx, key, version, value)
}

// wallClock is the machine's wall clock and an offset. It is a [monoclock.Source] as well.
type wallClock struct {
	began  time.Time
	offset atomic.Int64 // nanoseconds
}

func (c *wallClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}
func (c *wallClock) Wall() time.Time                        { return c.Now() }
func (c *wallClock) Elapsed() time.Duration                 { return time.Since(c.began) }
func (c *wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
