package lease_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
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

// sleepy is a clock that wakes its callers late, as a saturated processor does.
type sleepy struct{ late time.Duration }

func (sleepy) Now() time.Time                           { return time.Now() }
func (s sleepy) After(d time.Duration) <-chan time.Time { return time.After(d + s.late) }

// A store is not blamed for the time in which the keeper did not run.
func TestWokenLate(t *testing.T) {
	for late, want := range map[time.Duration]string{
		0:                      "store does not answer: swap node/0000000: ",
		100 * time.Millisecond: "store does not answer: swap node/0000000: ",
		2 * time.Second:        "this process gets too little processor time, and woke 2s late: swap node/0000000: ",
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(40 * 365 * 24 * time.Hour)
			store := storetest.NewMemory().Locking()
			var away atomic.Bool
			store.Before = func(context.Context, storetest.Op) storetest.Fault {
				if away.Load() {
					return storetest.Unavailable
				}
				return storetest.None
			}
			var log bytes.Buffer
			k, err := lease.Claim(t.Context(), store, lease.WithClock(sleepy{late}), logTo(&log))
			require.NoError(t, err)
			away.Store(true)
			time.Sleep(lease.DefaultLocalWindow/3 + late)
			synctest.Wait()
			assert.ErrorIs(t, k.Err(), lease.ErrStore)
			assert.ErrorContains(t, k.Err(), want)
			assert.Equal(t, late > time.Second, errors.Is(k.Err(), stores.ErrOverloaded))
			assert.Contains(t, log.String(), want)
			away.Store(false)
			require.NoError(t, k.Close())
		})
	}
}
