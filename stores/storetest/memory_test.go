package storetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// What no test of the packages on it would show: lease and sequence run on its other faults.
func TestMemoryFaults(t *testing.T) {
	m := storetest.NewMemory()
	other, ctx := m.Client(), t.Context()
	m.Fail(storetest.Delayed)
	for _, value := range []string{"first", "second", "third"} {
		_, err := m.Swap(ctx, "node/7", 0, []byte(value))
		assert.ErrorIs(t, err, storetest.ErrFault)
	}
	_, err := m.Read(ctx, "node/7")
	assert.ErrorIs(t, err, storetest.ErrFault)
	m.Fail(storetest.None)
	require.Len(t, other.Late(), 3)
	m.Drop(0)
	m.Drop(5)
	assert.False(t, m.Deliver(-1))
	assert.False(t, m.Deliver(2))
	assert.True(t, m.Deliver(1))
	assert.Equal(t, "third", string(m.Peek("node/7").Value))
	assert.False(t, m.Deliver(0), "the version is another by now")
	assert.Empty(t, m.Late())
	restore, was := m.Snapshot(), m.Peek("node/7")
	lost, err := m.Swap(ctx, was.Key, was.Version, nil)
	require.NoError(t, err)
	restore()
	next, err := m.Swap(ctx, was.Key, was.Version, nil)
	assert.True(t, err == nil && next > lost, "a version recurs: %d, %v", next, err)

	_, err = m.Locking().Traits().TryLock(ctx, "node/7")
	require.NoError(t, err)
	_, err = other.Locking().Traits().TryLock(ctx, "node/8")
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = m.Read(ctx, "node/7")
	assert.EqualError(t, err, "read node/7: storetest: the Memory is closed")
	_, err = other.Locking().Traits().TryLock(ctx, "node/7")
	assert.NoError(t, err)
	_, err = m.Client().Locking().Traits().TryLock(ctx, "node/8")
	assert.ErrorIs(t, err, stores.ErrLocked, "that was another's")

	// The hooks see an operation that fails, too, and what the context's end finds is what Before has made of it.
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	fault, after := storetest.None, 0
	other.Before = func(context.Context, storetest.Op) storetest.Fault { return fault }
	other.After = func(context.Context, storetest.Op) { after++ }
	_, err = other.Swap(ended, "node/1", 0, []byte("late"))
	assert.EqualError(t, err, "swap node/1: context canceled: enough")
	fault = storetest.ReplyLost
	_, err = other.Swap(ended, "node/1", 0, []byte("landed"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, storetest.ErrFault)
	assert.Equal(t, "landed", string(other.Peek("node/1").Value))
	assert.Equal(t, 2, after)
}
