package generator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// An embedded clock does not answer in place of what embeds it.
func TestEmbeddedClockIsReadByItsOwnNow(t *testing.T) {
	g := newGenerator(t, generator.WithClock(tomorrow{monoclock.New()}))
	d, err := g.Layout().Decode(mustNext(t, g))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(24*time.Hour), d.Time, time.Minute)
}

// Two times in a row, another caller enters a new tick between this caller's
// reading of the clock and its look at the slot. The clock is not behind, and nothing is borrowed.
func TestOvertakenTwiceIsNotBehind(t *testing.T) {
	for _, strategy := range []strategies.Strategy{
		strategies.BorrowUpTo(time.Hour),
		strategies.Func(func(s strategies.Situation) strategies.Decision {
			assert.Positive(t, s.Lead)
			return strategies.Decision{}
		}),
	} {
		c := &racingClock{now: noon}
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategy))
		overtake := func() {
			c.now = c.now.Add(time.Millisecond)
			hooks := c.hooks
			c.hooks = nil
			mustNext(t, g)
			c.hooks = hooks
		}
		c.hooks = []func(){overtake, overtake}
		at, _ := decode(t, g, mustNext(t, g))
		assert.LessOrEqual(t, at, 2*time.Millisecond)
		assert.Zero(t, g.Stats().BorrowedTicks)
		assert.Zero(t, g.Stats().MaxLead)
	}
}

// The wait for a monoclock on a fake source is the source's.
func TestWaitsOnASource(t *testing.T) {
	s := &source{handClock: newHandClock()}
	g := newGenerator(t, generator.WithClock(monoclock.New(monoclock.WithSource(s))), generator.WithLayout(narrow()))
	for range 5 {
		mustNext(t, g)
	}
	assert.Equal(t, []time.Duration{time.Millisecond}, s.waits)
	s.step(-time.Second)
	assert.EqualValues(t, 0, g.Stats().Drift, "the source's clocks move together here")
}

type source struct{ *handClock }

func (s *source) Wall() time.Time { return s.Now() }

func (s *source) Elapsed() time.Duration { return s.Now().Sub(noon) }

// F9: after a suspend that is longer than the grant, a call that has a deadline waits for the store, and another fails.
func TestSuspendPastTheGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		machine, keeper := clocktest.NewVirtual(noon), new(seam.Poller)
		k, err := lease.Claim(keeper.In(t.Context()), storetest.NewMemory(), lease.WithClock(monoclock.New(monoclock.WithSource(machine))), quiet)
		require.NoError(t, err)
		g, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
		require.NoError(t, err)
		mustNext(t, g)
		machine.Suspend(time.Hour)
		machine.Advance(time.Second) // within it, the clock looks for suspends
		var grant *generator.GrantError
		require.ErrorAs(t, second(g.Next()), &grant)
		require.Equal(t, time.Hour+time.Second-lease.DefaultWindow, grant.Past)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ids := make(chan snowflake.ID, 1)
		go func() {
			id, err := g.NextContext(ctx)
			assert.NoError(t, err)
			ids <- id
		}()
		synctest.Wait()
		require.Empty(t, ids, "it waits")
		_, err = keeper.Poll(t.Context())
		require.NoError(t, err)
		at, _ := decode(t, g, <-ids)
		require.Equal(t, time.Hour+time.Second, at)
		machine.Step(time.Hour)
		require.Equal(t, time.Hour, g.Stats().Drift)
		require.NoError(t, g.Close())
	})
}

// benbjohnson's real clock has an After, which is a timer: late, and not what the
// wait is counted by.
func TestRealClockIsWaitedForInTheMachinesTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGenerator(t, generator.WithClock(clock.New()), generator.WithLayout(narrow()))
		for range 5 {
			mustNext(t, g)
		}
		assert.Equal(t, time.Millisecond, g.Stats().Waited)
	})
}

type tomorrow struct{ *monoclock.Clock }

func (c tomorrow) Now() time.Time { return c.Clock.Now().Add(24 * time.Hour) }

// racingClock runs hooks while it is being read: what others do after the
// reader's time was taken, and before the reader knows it.
type racingClock struct {
	now   time.Time
	hooks []func()
}

func (c *racingClock) Now() time.Time {
	now := c.now
	if len(c.hooks) > 0 {
		hook := c.hooks[0]
		c.hooks = c.hooks[1:]
		hook()
	}
	return now
}
