package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/strategies"
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
				require.NoError(t, k.Close())
			}

			// Not strict, it only says so: with the first extension, if the others may as
			// well have crashed.
			var log bytes.Buffer
			store.Before = nil
			k, err = lease.Claim(t.Context(), store, quiet(ours, lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
			require.NoError(t, err)
			warned := func() bool { return bytes.Contains(log.Bytes(), []byte("the fleet")) }
			require.Equal(t, wrong && skew < 0, warned(), "%s", log.String())
			if skew > lease.DefaultWindow/3 {
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
	cause := errors.New("shut down")
	ctx, cancel := context.WithCancelCause(t.Context())
	store := memory.Client()
	store.After = func(context.Context, leasetest.Op) { cancel(cause) }
	_, err = lease.Claim(ctx, store, quiet(clock, lease.WithFleetCheck(time.Minute, true))...)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	var skew *lease.SkewError
	require.ErrorAs(t, err, &skew)
}

// Who crashed some time ago says nothing about the clock of who comes next, however
// many they were, and wherever they are kept.
func TestSkewOfThoseThatCrashed(t *testing.T) {
	for _, crashed := range []int{1, 2, 3, 10} {
		clock := clocktest.NewVirtual(noon)
		memory := leasetest.NewMemory()
		var log bytes.Buffer
		stores := map[string]lease.Store{"all hosts": memory.Client(), "one host": leasetest.NewMemory().Locking()}
		for name, store := range stores {
			for range crashed {
				_, err := lease.Claim(t.Context(), store, quiet(clock)...)
				require.NoError(t, err)
			}
			for _, downtime := range []time.Duration{40 * time.Second, 10 * time.Minute} {
				clock.Advance(downtime)
				k, err := lease.Claim(t.Context(), store, quiet(clock, lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
				require.NoError(t, err)
				for range 3 {
					require.Zero(t, k.Stats().Skew, "%s, %d, %s", name, crashed, downtime)
					clock.Advance(lease.DefaultWindow / 3)
					k.Poll(t.Context())
				}
				require.NoError(t, k.Close())
			}
		}
		require.NotContains(t, log.String(), "the fleet")
	}
}

// Whether the others live shows when they have had the time to write, and is asked once.
func TestSkewIsSettledOnce(t *testing.T) {
	truth := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	other := claim(t, memory.Client(), truth)
	ours := clocktest.NewVirtual(truth.Wall().Add(10 * time.Minute))
	lists := 0
	store := memory.Client()
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if op.Kind == leasetest.OpList {
			lists++
		}
		return leasetest.None
	}
	k := claim(t, store, ours)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	require.NoError(t, err)
	ids := make([]generator.ID, 4096*20_000) // more than half of the grant, at once
	for len(ids) > 0 {
		n, err := gen.NextN(ids[:min(len(ids), generator.MaxBatch)])
		require.NoError(t, err)
		ids = ids[n:]
	}
	k.Poll(t.Context())
	require.Positive(t, k.Stats().Extensions, "before anybody else had to")
	require.Zero(t, k.Stats().Skew)
	require.Equal(t, 1, lists)
	for i := range 6 {
		truth.Advance(lease.DefaultWindow / 3)
		other.Poll(t.Context())
		ours.Advance(lease.DefaultWindow / 3)
		k.Poll(t.Context())
		if extended := i > 2; extended { // when the clock has come to the IDs
			require.InDelta(t, 10*time.Minute, k.Stats().Skew, float64(lease.DefaultWindow/3))
		}
		require.LessOrEqual(t, lists, 2)
	}
	require.Equal(t, 2, lists)
}

// A limit of all the time that there is never warns.
func TestFleetCheckSwitchedOff(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	claim(t, memory.Client(), clock)
	clock.Step(-10 * time.Minute)
	k := claim(t, memory.Client(), clock, lease.WithFleetCheck(math.MaxInt64, true))
	require.InDelta(t, -10*time.Minute, k.Stats().Skew, float64(lease.DefaultWindow/3))
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
