package drive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// every makes each call once.
func every(c *drive.Calls) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"read": func(ctx context.Context) error { _, err := c.Read(ctx, "k"); return err },
		"list": func(ctx context.Context) error { _, err := c.List(ctx, "k", "l", 1); return err },
		"all":  func(ctx context.Context) error { return c.All(ctx, "k", "l", func(stores.Cell) error { return nil }) },
		"swap": func(ctx context.Context) error { _, err := c.Swap(ctx, "k", 0, nil); return err },
		"lock": func(ctx context.Context) error {
			unlock, err := c.TryLock(ctx, "k")
			unlock()
			return err
		},
	}
}

// TestTimeout: a store that hangs holds no call longer than its timeout.
func TestTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, deadline, want time.Duration
	}{
		"the timeout":             {3 * time.Second, 0, 3 * time.Second},
		"the deadline, if first":  {3 * time.Second, time.Second, time.Second},
		"no timeout, a deadline":  {0, time.Minute, time.Minute},
		"no timeout, no deadline": {0, 0, drive.DefaultTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			memory := storetest.NewMemory().Locking()
			memory.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
				<-ctx.Done()
				return storetest.None
			}
			for op, call := range every(&drive.Calls{Store: memory, Timeout: test.timeout}) {
				ctx := context.Background()
				if test.deadline > 0 {
					bounded, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = bounded
				}
				began := time.Now()
				err := call(ctx)
				assert.ErrorIs(t, err, drive.ErrStore, op)
				assert.ErrorIs(t, err, context.DeadlineExceeded, op)
				assert.Equal(t, test.want, time.Since(began), "%s of %s", name, op)
			}
		})
	}
}

// failing is a store whose calls fail.
type failing struct {
	storetest.LockingMemory
	err error
}

func (s failing) Read(context.Context, string) (stores.Cell, error) { return stores.Cell{}, s.err }
func (s failing) List(context.Context, string, string, int) ([]stores.Cell, error) {
	return nil, s.err
}
func (s failing) Swap(context.Context, string, uint64, []byte) (uint64, error) { return 0, s.err }
func (s failing) Traits() stores.Traits {
	fail := func(context.Context, string) (func(), error) { return nil, s.err }
	return stores.Traits{TryLock: fail}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err   error
		what  string
		want  string // after the operation
		store bool   // it wraps ErrStore
	}{
		{stores.ErrConflict, "", "", false},
		{stores.ErrLocked, "", "", false},
		{&stores.DamagedError{Key: "k", Problem: "p"}, "", "", false},
		{errors.New("no"), "", "store does not answer: %s k: no", true},
		{errors.New("no"), "it", "store does not answer: %s it: no", true},
		{errors.New("disk: list it, read it, swap it, lock it: no"), "it", "store does not answer: disk: list it, read it, swap it, lock it: no%.0s", true},
		{stores.Permanent.New("no"), "", "store refuses: %s k: no", true},
		{stores.ErrOverloaded, "", stores.ErrOverloaded.Error() + ": %s k: " + stores.ErrOverloaded.Error(), true},
	} {
		for op, call := range every(&drive.Calls{Store: failing{err: test.err}, What: test.what}) {
			err := call(t.Context())
			require.ErrorIs(t, err, test.err, op)
			require.Equal(t, test.store, errors.Is(err, drive.ErrStore), op)
			require.NotErrorIs(t, err, context.Canceled, op)
			if test.store {
				require.EqualError(t, err, fmt.Sprintf(test.want, strings.Replace(op, "all", "list", 1)))
			}
		}
	}
	late := &drive.CallError{Op: "swap", What: "k", Late: 1500 * time.Millisecond, Since: time.Unix(0, 0), Err: errors.New("no")}
	require.EqualError(t, late, stores.ErrOverloaded.Error()+", and woke 1.5s late since 1970-01-01T00:00:00Z: swap k: no")
	require.ErrorIs(t, late, stores.ErrOverloaded)
	require.ErrorIs(t, late, stores.Transient)
	unlock, err := (&drive.Calls{Store: storetest.NewMemory()}).TryLock(t.Context(), "k")
	require.NoError(t, err, "a store without locks")
	unlock()
	locking := &drive.Calls{Store: storetest.NewMemory().Locking()}
	for range 2 {
		unlock, err = locking.TryLock(t.Context(), "k")
		require.NoError(t, err)
		_, err = locking.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, stores.ErrLocked)
		unlock()
	}
}

// damagedPages lists three pages of cells, of which two lack damaged ones.
type damagedPages struct{ stores.Store }

func (damagedPages) List(_ context.Context, from, _ string, limit int) (cells []stores.Cell, err error) {
	switch {
	case from == "a":
		cells = slices.Repeat([]stores.Cell{{Key: "a7"}}, limit)
	case from == "a7\x00":
		cells, err = slices.Repeat([]stores.Cell{{Key: "b"}}, limit), &stores.DamagedError{Key: "b1", Problem: "p"}
	case from == "b\x00":
		cells, err = []stores.Cell{{Key: "c"}}, &stores.DamagedError{Key: "d", Problem: "p"}
	default:
		panic(from)
	}
	return cells, err
}

func TestAll(t *testing.T) {
	var last string
	n := 0
	c := drive.Calls{Store: damagedPages{}}
	err := c.All(t.Context(), "a", "z", func(cell stores.Cell) error {
		n++
		last = cell.Key
		if cell.Key == "c" {
			return &stores.DamagedError{Key: "c", Problem: "p"}
		}
		return nil
	})
	require.ErrorIs(t, err, stores.ErrDamaged)
	require.NotErrorIs(t, err, drive.ErrStore)
	require.ErrorContains(t, err, `"b1"`)
	require.ErrorContains(t, err, `"c"`)
	require.Equal(t, 1, strings.Count(err.Error(), `"d"`))
	require.Equal(t, "c", last)
	end := errors.New("end")
	require.Equal(t, end, c.All(t.Context(), "a", "z", func(stores.Cell) error { n--; return end }))
}

func TestTurn(t *testing.T) {
	turn := drive.NewTurn()
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, turn.Take(ctx))
	require.False(t, turn.Free())
	cancel(errors.New("why"))
	require.EqualError(t, turn.Take(ctx), "context canceled: why")
	bounded, end := context.WithTimeoutCause(t.Context(), -time.Second, &gaveUp{})
	defer end()
	require.EqualError(t, turn.Take(bounded), "gave up", "a cause that says that it is one")
	turn.Leave()
	for range 100 { // select would choose at random
		require.NoError(t, turn.Take(ctx), "a turn that is free")
		turn.Leave()
	}
}

type gaveUp struct{}

func (*gaveUp) Error() string        { return "gave up" }
func (*gaveUp) Is(target error) bool { return target == context.DeadlineExceeded }

func TestTexts(t *testing.T) {
	busy := drive.Busy("text")
	require.EqualError(t, busy, "text")
	require.ErrorIs(t, busy, drive.ErrStore)
	require.ErrorIs(t, busy, stores.ErrConflict)
	require.Equal(t, "höst 7, process 3", drive.Printable("höst 7, process 3"))
	require.Equal(t, "a?b?[2J\ufffd?", drive.Printable("a\nb\x1b[2J\xff\u202e"))
	for x, want := range map[any]bool{nil: true, (*storetest.Memory)(nil): true, storetest.NewMemory(): false, "": false} {
		require.Equal(t, want, drive.IsNil(x))
	}
}
