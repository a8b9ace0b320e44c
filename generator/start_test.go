package generator_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var quiet, silent = lease.WithLogger(slog.New(slog.DiscardHandler)), generator.WithLogger(slog.New(slog.DiscardHandler))

// A machine's clock that is set while Open waits for it: the clock is made afterwards.
func TestOpenWaitsForTheClock(t *testing.T) {
	year2025 := snowflake.Default().Epoch
	inBubbleAt := func(begin time.Time, test func(t *testing.T)) func(t *testing.T) {
		return func(t *testing.T) {
			register()
			inBubbleFrom(t, begin, test)
		}
	}
	t.Run("before the epoch", inBubbleAt(year2025.Add(-5*time.Second), func(t *testing.T) {
		open := func(ctx context.Context) (*generator.Generator, error) {
			return generator.Open(ctx, "opentest://", silent)
		}
		_, err := open(t.Context())
		var option *stores.OptionError
		require.ErrorAs(t, err, &option, "without a deadline it fails at once")
		require.ErrorContains(t, err, "2024-12-31T23:59:55Z, 5s before the epoch of the layout, 2025-01-01T00:00:00Z")
		require.ErrorContains(t, err, "testing/synctest")
		_, err = generator.New(generator.WithNode(0))
		require.ErrorContains(t, err, "sleep in it until the epoch")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = open(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, snowflake.ErrEarly)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		g, err := open(ctx)
		require.NoError(t, err)
		assert.Less(t, time.Since(year2025), time.Second)
		require.NoError(t, g.Close())
	}))
	t.Run("WithWallWithin", inBubbleAt(noon, func(t *testing.T) {
		within := func(most time.Duration) generator.Option { return generator.WithWallWithin(most) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, refused := range []func() (*generator.Generator, error){
			func() (*generator.Generator, error) {
				return generator.Open(t.Context(), "opentest://", within(3*time.Second))
			}, // no deadline
			func() (*generator.Generator, error) {
				return generator.Open(ctx, "opentest://", within(3*time.Second), generator.WithClock(monoclock.New()))
			},
			func() (*generator.Generator, error) { return generator.Open(ctx, "opentest://", within(0)) },
			func() (*generator.Generator, error) {
				return generator.New(generator.WithNode(0), within(3*time.Second))
			},
			func() (*generator.Generator, error) {
				_, err := lease.Claim(t.Context(), storetest.NewMemory().Client(), lease.WithWallWithin(3*time.Second), quiet)
				return nil, err
			},
		} {
			_, err := refused()
			var option *stores.OptionError
			require.ErrorAs(t, err, &option)
			assert.Equal(t, "WithWallWithin", option.Option)
		}
		_, known := monoclock.WallError() // the kernel's word, if it says anything
		g, err := generator.Open(ctx, "opentest://", within(time.Hour), silent)
		require.NoError(t, err)
		require.Equal(t, noon, time.Now().UTC(), "at once")
		assert.Equal(t, known, g.Stats().WallError >= 0)
		keeper, leased := g.Keeper()
		require.True(t, leased)
		assert.Equal(t, known, keeper.Stats().WallError >= 0)
		require.NoError(t, g.Close())
		register()
		g, err = generator.Open(ctx, "opentest://", within(1), silent)
		if known {
			require.ErrorIs(t, err, monoclock.ErrWall)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return
		}
		require.NoError(t, err, "no wait")
		require.NoError(t, g.Close())
	}))
}

// From the middle of 2157-03-16 on, a machine's clock that is made has no monotonic time, and is no bubble's.
func TestNoMonotonicTimeIsRefused(t *testing.T) {
	layout := snowflake.Default()
	layout.Epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	inBubbleFrom(t, time.Date(2157, 3, 16, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		make := func() error {
			g, err := generator.New(generator.WithNode(5), generator.WithLayout(layout))
			if err == nil {
				mustNext(t, g)
			}
			return err
		}
		require.NoError(t, make())
		require.True(t, base.InBubble())
		time.Sleep(time.Hour)
		require.False(t, base.InBubble(), "or a running process would share nothing any more, and repeat IDs")
		err := make()
		var option *stores.OptionError
		require.ErrorAs(t, err, &option)
		assert.Equal(t, "WithClock", option.Option)
		require.ErrorContains(t, err, "2157-03-16T13:00:00Z, and from 2157-03-16 on Go measures no monotonic time")
		_, err = lease.Claim(t.Context(), storetest.NewMemory().Client(), lease.WithLayout(layout), quiet)
		require.ErrorAs(t, err, &option)
		assert.False(t, errors.Is(err, snowflake.ErrEarly))
	})
}

// The clock that counts suspends is read by the generator itself, without a call. It follows within a second, in streams too, however
// long a tick is.
func TestGeneratorFollowsTheMachinesClock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		clock, layout := monoclock.New(), snowflake.Default()
		_, _, moved := seam.Steady(clock)
		moved.Due.Store(int64(time.Second)) // as where suspends are counted
		layout.Tick, layout.TimeBits = time.Hour, 20
		other := newGenerator(t, generator.WithClock(clock))
		g := newGenerator(t, generator.WithClock(clock), generator.WithLayout(layout))
		stream := g.Stream()
		at := func(g *generator.Generator, id snowflake.ID, err error) time.Time {
			require.NoError(t, err)
			d, err := g.Layout().Decode(id)
			require.NoError(t, err)
			return d.Time
		}
		check := func(want time.Time) {
			id, err := stream.Next()
			assert.Equal(t, want.Truncate(time.Hour), at(g, id, err))
			id, err = g.Next()
			assert.Equal(t, want.Truncate(time.Hour), at(g, id, err))
			id, err = other.Next()
			assert.Equal(t, want, at(other, id, err))
		}
		check(noon)
		check(noon)
		moved.Slept.Store(int64(90 * time.Minute)) // what a look finds
		time.Sleep(time.Second)
		check(noon.Add(90*time.Minute + time.Second))
		time.Sleep(time.Second)
		check(noon.Add(90*time.Minute + 2*time.Second))
		assert.GreaterOrEqual(t, moved.Due.Load(), int64(3*time.Second))
	})
}

// The clock is asked again once it is due, also if a suspend is counted while the gate is opened.
func TestGateOpensForAsLongAsTheReadingsTake(t *testing.T) {
	clock := monoclock.New()
	_, _, moved := seam.Steady(clock)
	moved.Due.Store(int64(time.Hour))
	g := newGenerator(t, generator.WithClock(clock))
	for range 1000 {
		var looks sync.WaitGroup
		looks.Go(func() {
			for range 100 {
				moved.Slept.Add(int64(time.Minute))
			}
		})
		for range 100 {
			require.Equal(t, time.Hour, g.OpenGate())
		}
		looks.Wait()
	}
}
