package lease_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

func TestFleetCheck(t *testing.T) {
	for _, skew := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 2 * time.Minute, -2 * time.Minute, 10 * time.Hour, -10 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			truth := clocktest.NewVirtual(noon)
			memory := leasetest.NewMemory()
			var fleet []*lease.Keeper
			for range 5 {
				fleet = append(fleet, claim(t, memory.Client(), truth))
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
			store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
				if op.Kind == leasetest.OpList {
					if listed++; listed == 2 {
						live(lease.DefaultWindow / 2)
					}
				}
				return leasetest.None
			}
			k, err := lease.Claim(t.Context(), store, quiet(ours, lease.WithFleetCheck(lease.DefaultFleetLimit, true))...)
			if wrong {
				var e *lease.SkewError
				require.ErrorAs(t, err, &e)
				require.InDelta(t, skew, e.Skew, float64(lease.DefaultWindow/3))
				require.Equal(t, 5, e.Nodes)
				require.Equal(t, lease.DefaultFleetLimit, e.Limit)
			} else {
				require.NoError(t, err)
				require.InDelta(t, skew, k.Stats().Skew, float64(lease.DefaultWindow/3))
				require.NoError(t, k.Close())
			}

			// Not strict, it only says so.
			var log bytes.Buffer
			store.Before = nil
			k, err = lease.Claim(t.Context(), store, quiet(ours, lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
			require.NoError(t, err)
			require.Equal(t, wrong, bytes.Contains(log.Bytes(), []byte("the fleet")), "%s", log.String())
			require.NoError(t, k.Close())
		})
	}
}

// A fleet that was stopped over night is no reason not to start again.
func TestFleetCheckOfAFleetThatStopped(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	for range 5 {
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock)...)
		require.NoError(t, err)
	}
	clock.Advance(8 * time.Hour)
	clock.AutoAdvance(true)
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithFleetCheck(time.Minute, true))...)
	require.NoError(t, err)
	require.NoError(t, k.Close())

	// The context ends the wait for their signs of life.
	clock.AutoAdvance(false)
	ctx, cancel := context.WithCancel(t.Context())
	store := memory.Client()
	store.After = func(context.Context, leasetest.Op) { cancel() }
	_, err = lease.Claim(ctx, store, quiet(clock, lease.WithFleetCheck(time.Minute, true))...)
	require.ErrorIs(t, err, context.Canceled)
	var skew *lease.SkewError
	require.ErrorAs(t, err, &skew)
}

// Who waits for a number is told once that its clock is wrong, not at each try.
func TestFleetCheckWarnsOnce(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	for range 2 {
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(1))...)
		require.NoError(t, err)
	}
	clock.Step(-time.Hour)
	clock.AutoAdvance(true)
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err := lease.Claim(ctx, memory.Client(), quiet(clock, small(1), lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("behind the fleet")), "%s", log.String())
}

// Those who died at some time or other stand in nobody's way: what counts is where
// most stand together.
func TestFleetCheckGoesByMost(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
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
