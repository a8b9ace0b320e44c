package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// lateTimer is a context whose timer is late: Done closes after its deadline.
type lateTimer struct {
	context.Context
	deadline time.Time
}

func (l lateTimer) Deadline() (time.Time, bool) { return l.deadline, true }

// punctual is a store that knows by the clock that the deadline of its context has passed.
type punctual struct{ storetest.LockingMemory }

func (p punctual) Read(ctx context.Context, key string) (stores.Cell, error) {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return stores.Cell{}, context.DeadlineExceeded
	}
	return p.LockingMemory.Read(ctx, key)
}

// TestReasonAtALateDeadline guards that a claim that gives up says why it waited, and not
// that its last try was interrupted.
func TestReasonAtALateDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(40 * 365 * 24 * time.Hour) // the bubble begins before the epoch
		cells := storetest.NewMemory()
		pinned := lease.WithNode(lease.NodeNumber(7))
		holder, err := lease.Claim(t.Context(), cells.Client().Locking(), pinned)
		require.NoError(t, err)
		defer func() { require.NoError(t, holder.Close()) }()

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = lease.Claim(lateTimer{ctx, time.Now().Add(time.Second)}, punctual{cells.Client().Locking()}, pinned)
		assert.True(t, errors.Is(err, lease.ErrHeld), "%v", err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
