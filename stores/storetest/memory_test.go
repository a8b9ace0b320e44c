package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func swap(t *testing.T, m stores.Store, old stores.Cell, value string) stores.Cell {
	t.Helper()
	return swapWith(t.Context(), t, m, old, value)
}

func TestMemoryUnavailable(t *testing.T) {
	m := storetest.NewMemory()
	was := swap(t, m, stores.Cell{Key: "node/7"}, "old")
	m.Fail(storetest.Unavailable, 4)
	_, err := m.Swap(t.Context(), was.Key, was.Version, []byte("new"))
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.NotErrorIs(t, err, stores.ErrConflict)
	_, err = m.Read(t.Context(), "node/7")
	assert.ErrorIs(t, err, storetest.ErrFault)
	_, err = m.List(t.Context(), "", "z", 9)
	assert.ErrorIs(t, err, storetest.ErrFault)
	_, err = m.Client().Read(t.Context(), "node/7")
	assert.NoError(t, err, "another client is well")
	_, err = m.Locking().Traits().TryLock(t.Context(), "node/7")
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.Equal(t, was, m.Peek("node/7"))
	swap(t, m, was, "new")

	m.Fail(storetest.Unavailable, 100)
	m.Heal()
	_, err = m.Read(t.Context(), "node/7")
	assert.NoError(t, err)
}

func TestMemoryReplyLost(t *testing.T) {
	m := storetest.NewMemory()
	m.Fail(storetest.ReplyLost, 2)
	_, err := m.Swap(t.Context(), "node/7", 0, []byte("new"))
	assert.EqualError(t, err, "swap node/7: storetest: the store cannot be reached, as the test has asked for")
	assert.Equal(t, "new", string(m.Peek("node/7").Value))
	_, err = m.Swap(t.Context(), "node/7", 0, []byte("again"))
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.NotErrorIs(t, err, stores.ErrConflict, "that is in the reply")
	assert.Equal(t, "new", string(m.Peek("node/7").Value))
}

func TestMemoryDelayed(t *testing.T) {
	m := storetest.NewMemory()
	was := swap(t, m, stores.Cell{Key: "node/7"}, "old")
	m.Fail(storetest.Delayed, 4)
	for _, value := range []string{"first", "second", "third"} {
		_, err := m.Swap(t.Context(), was.Key, was.Version, []byte(value))
		assert.ErrorIs(t, err, storetest.ErrFault)
	}
	_, err := m.Read(t.Context(), "node/7")
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.Equal(t, was, m.Peek("node/7"))
	other := m.Client()
	require.Len(t, other.Late(), 3)
	assert.Equal(t, storetest.Late{Key: "node/7", Version: was.Version, Value: []byte("second")}, other.Late()[1])

	m.Drop(0)
	m.Drop(5)
	assert.False(t, m.Deliver(-1))
	assert.False(t, m.Deliver(2))
	assert.True(t, m.Deliver(1))
	assert.Equal(t, "third", string(m.Peek("node/7").Value))
	assert.False(t, m.Deliver(0), "the version is another by now")
	assert.Equal(t, "third", string(m.Peek("node/7").Value))
	assert.Empty(t, m.Late())
}

// The hooks see every operation, others can use the cells in them, and what the
// context's end finds is what Before has made of it.
func TestMemoryHooks(t *testing.T) {
	m := storetest.NewMemory()
	other := m.Client()
	var log []string
	fault := storetest.None
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Before = func(got context.Context, op storetest.Op) storetest.Fault {
		assert.Equal(t, ctx, got)
		log = append(log, fmt.Sprintf("before %v %s %d %s", op.Kind, op.Key, op.Version, op.Value))
		swap(t, other, other.Peek("node/1"), "meanwhile")
		return fault
	}
	m.After = func(_ context.Context, op storetest.Op) {
		log = append(log, fmt.Sprintf("after %v: %s", op.Kind, other.Peek(op.Key).Value))
	}
	cell := swapWith(ctx, t, m, stores.Cell{Key: "node/7"}, "value")
	_, err := m.Read(ctx, "node/7")
	require.NoError(t, err)
	cells, err := m.List(ctx, "", "z", 9)
	require.NoError(t, err)
	assert.Len(t, cells, 2)
	_, err = m.Locking().Traits().TryLock(ctx, "node/7")
	require.NoError(t, err)
	fault = storetest.Unavailable
	_, err = m.Swap(ctx, cell.Key, cell.Version, []byte("more"))
	require.ErrorIs(t, err, storetest.ErrFault)
	fault = storetest.None
	cancel(errors.New("enough"))
	_, err = m.Swap(ctx, cell.Key, cell.Version, []byte("late"))
	assert.EqualError(t, err, "swap node/7: context canceled: enough")
	assert.ErrorIs(t, err, context.Canceled)
	fault = storetest.ReplyLost
	_, err = m.Swap(ctx, cell.Key, cell.Version, []byte("landed"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.Equal(t, []string{
		"before swap node/7 0 value", "after swap: value",
		"before read node/7 0 ", "after read: value",
		"before list  0 ", "after list: ",
		"before lock node/7 0 ", "after lock: value",
		"before swap node/7 2 more", "after swap: value",
		"before swap node/7 2 late", "after swap: value",
		"before swap node/7 2 landed", "after swap: landed",
	}, log)
	assert.Equal(t, "OpKind(9)", storetest.OpKind(9).String())
}

func swapWith(ctx context.Context, t *testing.T, m stores.Store, old stores.Cell, value string) stores.Cell {
	t.Helper()
	version, err := m.Swap(ctx, old.Key, old.Version, []byte(value))
	require.NoError(t, err)
	return stores.Cell{Key: old.Key, Version: version, Value: []byte(value)}
}

func TestMemoryCrashFreesLocks(t *testing.T) {
	m := storetest.NewMemory()
	other := m.Client()
	unlock, err := m.Locking().Traits().TryLock(t.Context(), "node/7")
	require.NoError(t, err)
	theirs, err := other.Locking().Traits().TryLock(t.Context(), "node/8")
	require.NoError(t, err)
	m.Crash()
	_, err = other.Locking().Traits().TryLock(t.Context(), "node/7")
	require.NoError(t, err)
	unlock()
	_, err = m.Locking().Traits().TryLock(t.Context(), "node/7")
	assert.ErrorIs(t, err, stores.ErrLocked, "an unlock of before the crash frees nothing")
	_, err = m.Locking().Traits().TryLock(t.Context(), "node/8")
	assert.ErrorIs(t, err, stores.ErrLocked, "that was another's")
	theirs()
	m.Fail(storetest.ReplyLost, 1)
	_, err = m.Locking().Traits().TryLock(t.Context(), "node/8")
	assert.ErrorIs(t, err, storetest.ErrFault)
	_, err = m.Locking().Traits().TryLock(t.Context(), "node/8")
	assert.NoError(t, err)
}

// A store that was restored from a backup gives its writes new versions.
func TestMemorySnapshot(t *testing.T) {
	m := storetest.NewMemory()
	was := swap(t, m, stores.Cell{Key: "node/7"}, "old")
	restore := m.Snapshot()
	lost := swap(t, m, was, "lost")
	swap(t, m, stores.Cell{Key: "node/8"}, "lost, too")
	for range 2 {
		restore()
		assert.Equal(t, was, m.Client().Peek("node/7"))
		assert.Zero(t, m.Peek("node/8").Version)
		cells, err := m.List(t.Context(), "", "z", 9)
		require.NoError(t, err)
		assert.Equal(t, []stores.Cell{was}, cells)
		assert.Greater(t, swap(t, m, was, "other").Version, lost.Version)
	}
}

func TestMemoryClose(t *testing.T) {
	m := storetest.NewMemory()
	_, err := m.Locking().Traits().TryLock(t.Context(), "node/7")
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Read(t.Context(), "node/7")
	assert.EqualError(t, err, "read node/7: storetest: the Memory is closed")
	_, err = m.Swap(t.Context(), "node/7", 0, nil)
	assert.Error(t, err)
	_, err = m.Client().Locking().Traits().TryLock(t.Context(), "node/7")
	assert.NoError(t, err)
}

func BenchmarkMemorySwap(b *testing.B) {
	m := storetest.NewMemory()
	m.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.None }
	var version uint64
	value := make([]byte, 60)
	for i := range value {
		value[i] = 'v'
	}
	var err error
	b.ReportAllocs()
	for b.Loop() {
		if version, err = m.Swap(b.Context(), "node/0000007", version, value); err != nil {
			b.Fatal(err)
		}
	}
}
