package lease_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestFleetCheck(t *testing.T) {
	for _, skew := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 2 * time.Minute, -2 * time.Minute, 10 * time.Hour, -10 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			truth := clocktest.NewVirtual(noon)
			memory := storetest.NewMemory()
			var fleet []*lease.Keeper
			for range 5 {
				fleet = append(fleet, claim(t, memory.Client(), truth, small(4)))
			}
			live := func(d time.Duration) {
				for ; d > 0; d -= time.Second {
					truth.Advance(time.Second)
					for _, k := range fleet {
						k.Poll(t.Context())
					}
				}
			}
			live(50 * time.Second)
			wrong := skew.Abs() > lease.DefaultFleetLimit
			ours := clocktest.NewVirtual(truth.Wall().Add(skew))
			ours.AutoAdvance(true) // as the check waits; they live on meanwhile
			store := memory.Client()
			listed := 0
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if op.Kind == storetest.OpList {
					if listed++; listed == 2 {
						live(lease.DefaultWindow / 2)
					}
				}
				return storetest.None
			}
			k, err := lease.Claim(t.Context(), store, quiet(ours, small(4), lease.WithFleetCheck(lease.DefaultFleetLimit, true))...)
			if wrong {
				require.ErrorIs(t, err, lease.ErrSkew)
				require.ErrorContains(t, err, "by the grants of 5 nodes (limit 1m0s)")
			} else {
				require.NoError(t, err)
				require.NoError(t, k.Close())
			}

			// Not strict, it only says so, when the others have shown that they live.
			var log bytes.Buffer
			store.Before = nil
			k, err = lease.Claim(t.Context(), store, quiet(ours, small(4), logTo(&log))...)
			require.NoError(t, err)
			warned := func() bool { return bytes.Contains(log.Bytes(), []byte("the fleet")) }
			require.False(t, warned(), "%s", log.String())
			if skew.Abs() > lease.DefaultWindow/3 {
				require.Zero(t, k.Stats().Skew)
			}
			for range 2 {
				live(lease.DefaultWindow / 3)
				ours.Advance(lease.DefaultWindow / 3)
				k.Poll(t.Context())
				require.InDelta(t, skew, k.Stats().Skew, float64(lease.DefaultWindow/3))
				require.Equal(t, wrong, warned(), "%s", log.String())
			}
			require.Equal(t, uint64(2), k.Stats().Extensions)
			require.NoError(t, k.Close())
		})
	}
}

// A fleet that was stopped over night is no reason not to start again.
func TestFleetCheckOfAFleetThatStopped(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	for range 5 {
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(4))...)
		require.NoError(t, err)
	}
	clock.Advance(8 * time.Hour)
	clock.AutoAdvance(true)
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(4), lease.WithFleetCheck(time.Minute, true))...)
	require.NoError(t, err)
	require.NoError(t, k.Close())

	// The context ends the wait for their signs of life.
	clock.AutoAdvance(false)
	cause := errors.New("shut down")
	ctx, cancel := context.WithCancelCause(t.Context())
	store := memory.Client()
	store.After = func(_ context.Context, op storetest.Op) {
		if op.Kind == storetest.OpList {
			cancel(cause)
		}
	}
	_, err = lease.Claim(ctx, store, quiet(clock, small(4), lease.WithFleetCheck(time.Minute, true))...)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, lease.ErrSkew)
}

// Those who died at some time or other stand in nobody's way: what counts is where
// most stand together.
func TestFleetCheckGoesByMost(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	for range 20 { // crashed, one a minute
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock)...)
		require.NoError(t, err)
		clock.Advance(time.Minute)
	}
	for range 3 {
		claim(t, memory.Client(), clock)
	}
	k := claim(t, memory.Client(), clock, lease.WithFleetCheck(time.Minute, true))
	require.InDelta(t, 0, k.Stats().Skew, float64(lease.DefaultWindow/3))
}
