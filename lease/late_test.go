package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
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

// shared is a log that a keeper's goroutine writes while a test reads it.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(line)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *shared) option() lease.Option {
	return lease.WithLogger(slog.New(slog.NewTextHandler(s, nil)))
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
			var log shared
			k, err := lease.Claim(t.Context(), store, lease.WithClock(sleepy{late}), log.option())
			require.NoError(t, err)
			away.Store(true)
			time.Sleep(lease.DefaultLocalWindow/3 + late)
			synctest.Wait()
			assert.ErrorIs(t, k.Err(), lease.ErrStore)
			assert.ErrorContains(t, k.Err(), want)
			assert.Equal(t, late > time.Second, errors.Is(k.Err(), stores.ErrOverloaded))
			assert.Contains(t, log.String(), want)
			time.Sleep(time.Minute)
			assert.EqualValues(t, late/(2*time.Second), k.Stats().Pauses, "not after the grant has ended")
			away.Store(false)
			require.NoError(t, k.Close())
		})
	}
}

// stopping is a clock of a process that is stopped in its next wait.
type stopping struct{ wait *atomic.Int64 }

func (stopping) Now() time.Time { return time.Now() }
func (s stopping) After(d time.Duration) <-chan time.Time {
	return time.After(d + time.Duration(s.wait.Swap(0)))
}

// A process that was stopped until its grant had ended says so once, and does not blame the store.
func TestResumed(t *testing.T) {
	const resumed = `level=WARN msg="lease: resumed, 4m0s after its grant ended" node=0 at=2039-12-22T00:00:03.000Z `
	const stop = 4*time.Minute + lease.DefaultLocalWindow*2/3
	for name, test := range map[string]struct {
		wait, before, after time.Duration // for so long it is stopped: in a wait, before and after an operation is carried out
		away                bool          // the store, from then on
		want                string        // in the log
	}{
		"in a wait":                      {wait: stop, want: resumed + "late=4m2s"},
		"in a wait, the store goes away": {wait: stop, away: true, want: "processor time, and woke 4m2s late: "},
		"in an operation":                {after: stop, want: resumed + "late=4m0s"},
		"in an operation that fails":     {before: stop, away: true, want: "processor time, and woke 4m0s late: "},
		"not until its grant ends":       {wait: time.Second},
		"not at all":                     {away: true, want: "store does not answer: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(40 * 365 * 24 * time.Hour)
				store := storetest.NewMemory().Locking()
				var away atomic.Bool
				var wait, before, after atomic.Int64
				store.Before = func(context.Context, storetest.Op) storetest.Fault {
					time.Sleep(time.Duration(before.Swap(0)))
					if away.Load() {
						return storetest.Unavailable
					}
					return storetest.None
				}
				store.After = func(context.Context, storetest.Op) { time.Sleep(time.Duration(after.Swap(0))) }
				wait.Store(int64(test.wait))
				var log shared
				k, err := lease.Claim(t.Context(), store, lease.WithClock(stopping{&wait}), log.option())
				require.NoError(t, err)
				before.Store(int64(test.before))
				after.Store(int64(test.after))
				away.Store(test.away)
				time.Sleep(lease.DefaultLocalWindow/3 + stop)
				synctest.Wait()
				assert.Contains(t, log.String(), test.want)
				pauses := 0
				if test.wait+test.before+test.after == stop {
					pauses = 1
				}
				assert.EqualValues(t, pauses, k.Stats().Pauses)
				assert.Equal(t, pauses, strings.Count(log.String(), resumed), "%s", log.String())
				assert.Equal(t, test.away, strings.Contains(log.String(), "lease: grant ended"))
				if test.away {
					time.Sleep(lease.DefaultLocalWindow)
					synctest.Wait()
					assert.ErrorContains(t, k.Err(), "store does not answer since", "later failures are the store's")
				}
				away.Store(false)
				require.NoError(t, k.Close())
			})
		})
	}
}
