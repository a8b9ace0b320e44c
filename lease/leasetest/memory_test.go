package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

func swap(t *testing.T, m lease.Store, old lease.Cell, value string) lease.Cell {
	t.Helper()
	cell, err := m.Swap(t.Context(), old, []byte(value))
	require.NoError(t, err)
	return cell
}

func TestMemoryUnavailable(t *testing.T) {
	m := leasetest.NewMemory()
	was := swap(t, m, lease.Cell{Node: 7}, "old")
	m.Fail(leasetest.Unavailable, 4)
	_, err := m.Swap(t.Context(), was, []byte("new"))
	assert.ErrorIs(t, err, leasetest.ErrFault)
	assert.NotErrorIs(t, err, lease.ErrConflict)
	_, err = m.Read(t.Context(), 7)
	assert.ErrorIs(t, err, leasetest.ErrFault)
	_, err = m.List(t.Context())
	assert.ErrorIs(t, err, leasetest.ErrFault)
	_, err = m.Client().Read(t.Context(), 7)
	assert.NoError(t, err, "another client is well")
	_, err = m.Locking().TryLock(t.Context(), 7)
	assert.ErrorIs(t, err, leasetest.ErrFault)
	assert.Equal(t, was, m.Peek(7))
	swap(t, m, was, "new")

	m.Fail(leasetest.Unavailable, 100)
	m.Heal()
	_, err = m.Read(t.Context(), 7)
	assert.NoError(t, err)
}

func TestMemoryReplyLost(t *testing.T) {
	m := leasetest.NewMemory()
	m.Fail(leasetest.ReplyLost, 2)
	_, err := m.Swap(t.Context(), lease.Cell{Node: 7}, []byte("new"))
	assert.EqualError(t, err, "swap node 7: leasetest: the store cannot be reached, as the test has asked for")
	assert.Equal(t, "new", string(m.Peek(7).Value))
	_, err = m.Swap(t.Context(), lease.Cell{Node: 7}, []byte("again"))
	assert.ErrorIs(t, err, leasetest.ErrFault)
	assert.NotErrorIs(t, err, lease.ErrConflict, "that is in the reply")
	assert.Equal(t, "new", string(m.Peek(7).Value))
}

func TestMemoryDelayed(t *testing.T) {
	m := leasetest.NewMemory()
	was := swap(t, m, lease.Cell{Node: 7}, "old")
	m.Fail(leasetest.Delayed, 4)
	for _, value := range []string{"first", "second", "third"} {
		_, err := m.Swap(t.Context(), was, []byte(value))
		assert.ErrorIs(t, err, leasetest.ErrFault)
	}
	_, err := m.Read(t.Context(), 7)
	assert.ErrorIs(t, err, leasetest.ErrFault)
	assert.Equal(t, was, m.Peek(7))
	other := m.Client()
	require.Len(t, other.Late(), 3)
	assert.Equal(t, leasetest.Late{Node: 7, Version: was.Version, Value: []byte("second")}, other.Late()[1])

	m.Drop(0)
	m.Drop(5)
	assert.False(t, m.Deliver(-1))
	assert.False(t, m.Deliver(2))
	assert.True(t, m.Deliver(1))
	assert.Equal(t, "third", string(m.Peek(7).Value))
	assert.False(t, m.Deliver(0), "the version is another by now")
	assert.Equal(t, "third", string(m.Peek(7).Value))
	assert.Empty(t, m.Late())
}

// The hooks see every operation, others can use the cells in them, and what the
// context's end finds is what Before has made of it.
func TestMemoryHooks(t *testing.T) {
	m := leasetest.NewMemory()
	other := m.Client()
	var log []string
	fault := leasetest.None
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Before = func(got context.Context, op leasetest.Op) leasetest.Fault {
		assert.Equal(t, ctx, got)
		log = append(log, fmt.Sprintf("before %v %d %d %s", op.Kind, op.Node, op.Version, op.Value))
		swap(t, other, other.Peek(1), "meanwhile")
		return fault
	}
	m.After = func(_ context.Context, op leasetest.Op) {
		log = append(log, fmt.Sprintf("after %v: %s", op.Kind, other.Peek(op.Node).Value))
	}
	cell := swapWith(ctx, t, m, lease.Cell{Node: 7}, "value")
	_, err := m.Read(ctx, 7)
	require.NoError(t, err)
	cells, err := m.List(ctx)
	require.NoError(t, err)
	assert.Len(t, cells, 2)
	_, err = m.Locking().TryLock(ctx, 7)
	require.NoError(t, err)
	fault = leasetest.Unavailable
	_, err = m.Swap(ctx, cell, []byte("more"))
	require.ErrorIs(t, err, leasetest.ErrFault)
	fault = leasetest.None
	cancel(errors.New("enough"))
	_, err = m.Swap(ctx, cell, []byte("late"))
	assert.EqualError(t, err, "swap node 7: context canceled: enough")
	assert.ErrorIs(t, err, context.Canceled)
	fault = leasetest.ReplyLost
	_, err = m.Swap(ctx, cell, []byte("landed"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, leasetest.ErrFault)
	assert.Equal(t, []string{
		"before swap 7 0 value", "after swap: value",
		"before read 7 0 ", "after read: value",
		"before list 0 0 ", "after list: ",
		"before lock 7 0 ", "after lock: value",
		"before swap 7 2 more", "after swap: value",
		"before swap 7 2 late", "after swap: value",
		"before swap 7 2 landed", "after swap: landed",
	}, log)
	assert.Equal(t, "OpKind(9)", leasetest.OpKind(9).String())
}

func swapWith(ctx context.Context, t *testing.T, m lease.Store, old lease.Cell, value string) lease.Cell {
	t.Helper()
	cell, err := m.Swap(ctx, old, []byte(value))
	require.NoError(t, err)
	return cell
}

func TestMemoryCrashFreesLocks(t *testing.T) {
	m := leasetest.NewMemory()
	other := m.Client()
	unlock, err := m.Locking().TryLock(t.Context(), 7)
	require.NoError(t, err)
	theirs, err := other.Locking().TryLock(t.Context(), 8)
	require.NoError(t, err)
	m.Crash()
	_, err = other.Locking().TryLock(t.Context(), 7)
	require.NoError(t, err)
	unlock()
	_, err = m.Locking().TryLock(t.Context(), 7)
	assert.ErrorIs(t, err, lease.ErrLocked, "an unlock of before the crash frees nothing")
	_, err = m.Locking().TryLock(t.Context(), 8)
	assert.ErrorIs(t, err, lease.ErrLocked, "that was another's")
	theirs()
	m.Fail(leasetest.ReplyLost, 1)
	_, err = m.Locking().TryLock(t.Context(), 8)
	assert.ErrorIs(t, err, leasetest.ErrFault)
	_, err = m.Locking().TryLock(t.Context(), 8)
	assert.NoError(t, err)
}

func BenchmarkMemorySwap(b *testing.B) {
	m := leasetest.NewMemory()
	m.Before = func(context.Context, leasetest.Op) leasetest.Fault { return leasetest.None }
	cell := lease.Cell{Node: 7}
	value := make([]byte, 60)
	var err error
	b.ReportAllocs()
	for b.Loop() {
		if cell, err = m.Swap(b.Context(), cell, value); err != nil {
			b.Fatal(err)
		}
	}
}
