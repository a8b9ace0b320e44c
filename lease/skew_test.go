package lease_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// pass lets time pass for two keepers with a clock each: the other's first.
func pass(t *testing.T, d time.Duration, clock *clocktest.Virtual, other *lease.Keeper, ours *clocktest.Virtual, k *lease.Keeper) {
	clock.Advance(d)
	other.Poll(t.Context())
	ours.Advance(d)
	k.Poll(t.Context())
}

// logTo logs into b.
func logTo(b *bytes.Buffer) lease.Option {
	return lease.WithLogger(slog.New(slog.NewTextHandler(b, nil)))
}

// Who crashed some time ago says nothing about the clock of who comes next, however
// many they were, and wherever they are kept.
func TestSkewOfThoseThatCrashed(t *testing.T) {
	for _, crashed := range []int{1, 2, 3, 10} {
		clock := clocktest.NewVirtual(noon)
		memory := storetest.NewMemory()
		var log bytes.Buffer
		stores := map[string]stores.Store{"all hosts": memory.Client(), "one host": storetest.NewMemory().Locking()}
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
	memory := storetest.NewMemory()
	other := claim(t, memory.Client(), truth, small(4))
	ours := clocktest.NewVirtual(truth.Wall().Add(10 * time.Minute))
	lists := 0
	store := memory.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpList {
			lists++
		}
		return storetest.None
	}
	k := claim(t, store, ours, small(4))
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	require.NoError(t, err)
	ids := make([]snowflake.ID, 4096*20_000) // more than half of the grant, at once
	for len(ids) > 0 {
		n, err := gen.NextN(ids)
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
	memory := storetest.NewMemory()
	other := claim(t, memory.Client(), clock)
	ours := clocktest.NewVirtual(clock.Wall().Add(-10 * time.Minute))
	k := claim(t, memory.Client(), ours, lease.WithFleetCheck(math.MaxInt64, true))
	pass(t, lease.DefaultWindow/3, clock, other, ours, k)
	require.InDelta(t, -10*time.Minute, k.Stats().Skew, float64(lease.DefaultWindow/3))
}

// A process that must have its number and crashes again and again moves its limit away
// from the clock, which says nothing about the clock: not to itself, nor to others.
func TestSkewOfACrashLoop(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	var log bytes.Buffer
	for range 6 {
		k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, logTo(&log), lease.WithNode(lease.NodeNumber(0)))...)
		require.NoError(t, err)
		clock.Advance(5 * time.Second)
		require.Zero(t, k.Stats().Skew)
	}
	neighbour := claim(t, memory.Client(), clock, logTo(&log), lease.WithFleetCheck(time.Minute, false))
	for range 5 {
		require.Zero(t, neighbour.Stats().Skew)
		clock.Advance(lease.DefaultWindow / 3)
		neighbour.Poll(t.Context())
	}
	require.NotContains(t, log.String(), "the fleet")
}

// A window may be longer than ours: then a limit tells less about the clock, and signs of
// life come later.
func TestSkewOfLongerWindows(t *testing.T) {
	const long = 10 * time.Minute
	for _, since := range []time.Duration{time.Second, 100 * time.Second, 199 * time.Second} {
		for _, wrong := range []time.Duration{0, time.Hour, -time.Hour} {
			truth := clocktest.NewVirtual(noon)
			memory := storetest.NewMemory()
			other := claim(t, memory.Client(), truth, lease.WithWindow(long))
			truth.Advance(long / 3)
			other.Poll(t.Context())
			truth.Advance(since)
			ours := clocktest.NewVirtual(truth.Wall().Add(wrong))
			var log bytes.Buffer
			k := claim(t, memory.Client(), ours, logTo(&log))
			for range 40 {
				pass(t, 10*time.Second, truth, other, ours, k)
			}
			require.InDelta(t, wrong, k.Stats().Skew, float64(long/3), "%s, %s", since, wrong)
			require.Equal(t, wrong != 0, bytes.Contains(log.Bytes(), []byte("the fleet")), "%s, %s: %s", since, wrong, log.String())
		}
	}
}

// Who writes a moment after us is asked for again.
func TestSkewOfThoseThatAreLate(t *testing.T) {
	truth := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	other := claim(t, memory.Client(), truth)
	ours := clocktest.NewVirtual(truth.Wall().Add(10 * time.Hour))
	var log bytes.Buffer
	k := claim(t, memory.Client(), ours, logTo(&log))
	for range 2 { // ours first
		pass(t, lease.DefaultWindow/3, ours, k, truth, other)
	}
	require.InDelta(t, 10*time.Hour, k.Stats().Skew, float64(lease.DefaultWindow/3))
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("ahead of the fleet")), "%s", log.String())
}

// A store that does not list is asked a few times, each time for not longer than an
// extension can wait, and then left alone.
func TestSkewWithoutAList(t *testing.T) {
	truth := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	claim(t, memory.Client(), truth)
	ours := clocktest.NewVirtual(noon.Add(time.Hour))
	store := memory.Client()
	lists := 0
	store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpList {
			if lists++; lists > 1 {
				deadline, ok := ctx.Deadline()
				require.True(t, ok)
				require.LessOrEqual(t, time.Until(deadline), time.Second)
				return storetest.Unavailable
			}
		}
		return storetest.None
	}
	k := claim(t, store, ours, lease.WithNode(lease.NodeNumber(900)))
	for range 360 {
		ours.Advance(lease.DefaultWindow / 3)
		k.Poll(t.Context())
		k.Poll(t.Context())
	}
	require.Equal(t, 1+3, lists)
	require.EqualValues(t, 3, k.Stats().Failures)
	require.EqualValues(t, 360, k.Stats().Extensions)
}

// One or two that crashed are no reason for a strict start to wait, for which it may have
// no time.
func TestStrictStartAfterACrash(t *testing.T) {
	for crashed, options := range map[int][]lease.Option{
		1: nil,
		2: {lease.WithNode(lease.NodeNumber(0))},
		3: {lease.WithNode(lease.NodeNumber(0))}, // one of them was our own
	} {
		clock := clocktest.NewVirtual(noon)
		memory := storetest.NewMemory()
		for node := range crashed {
			_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithNode(lease.NodeNumber(int64(node))))...)
			require.NoError(t, err)
		}
		clock.Advance(time.Hour)
		clock.AutoAdvance(true)
		before := clock.Elapsed()
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, append(options, lease.WithFleetCheck(time.Minute, true))...)...)
		require.NoError(t, err)
		require.Equal(t, before, clock.Elapsed())
	}
}
