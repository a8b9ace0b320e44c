package generator_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// borrower is a strategy from outside: it borrows whatever the lead.
type borrower struct{}

func (borrower) Decide(strategies.Situation) strategies.Decision {
	return strategies.Decision{Action: strategies.ActionBorrow}
}

func TestExhausted(t *testing.T) {
	newNarrow := func(t *testing.T, s strategies.Strategy) (*generator.Generator, *handClock) {
		c := newHandClock()
		c.step(300 * time.Microsecond)
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithStrategy(s))
		for range 4 {
			mustNext(t, g)
		}
		return g, c
	}
	t.Run("reject", func(t *testing.T) {
		g, c := newNarrow(t, strategies.Reject())
		id, err := g.Next()
		assert.Zero(t, id)
		assert.ErrorIs(t, err, generator.ErrExhausted)
		assert.NotErrorIs(t, err, generator.ErrBehind)
		var lead *generator.LeadError
		require.ErrorAs(t, err, &lead)
		assert.Equal(t, generator.LeadError{Cause: strategies.Exhausted, Lead: 700 * time.Microsecond}, *lead)
		assert.ErrorContains(t, err, "next free slot in 700µs (limit 0s)")
		assert.EqualValues(t, 1, g.Stats().Rejections)
		c.step(700 * time.Microsecond)
		at, sequence := decode(t, g, mustNext(t, g))
		assert.Equal(t, time.Millisecond, at)
		assert.Zero(t, sequence)
	})
	t.Run("wait", func(t *testing.T) {
		g, c := newNarrow(t, strategies.WaitUpTo(time.Millisecond))
		at, _ := decode(t, g, mustNext(t, g))
		assert.Equal(t, time.Millisecond, at)
		assert.Equal(t, []time.Duration{700 * time.Microsecond}, c.waited())
		s := g.Stats()
		assert.EqualValues(t, 1, s.Waits)
		assert.Equal(t, 700*time.Microsecond, s.Waited)
	})
	t.Run("borrow", func(t *testing.T) {
		g, c := newNarrow(t, strategies.BorrowUpTo(2*time.Millisecond))
		for i := range 8 { // two ticks ahead
			at, sequence := decode(t, g, mustNext(t, g))
			assert.Equal(t, time.Duration(1+i/4)*time.Millisecond, at)
			assert.EqualValues(t, i%4, sequence)
		}
		_, err := g.Next()
		assert.ErrorIs(t, err, generator.ErrBehind, "behind its own borrow")
		assert.ErrorContains(t, err, "clock is 2.7ms behind the last issued ID (limit 2ms)")
		assert.Empty(t, c.waited())
		s := g.Stats()
		assert.EqualValues(t, 2, s.BorrowedTicks)
		assert.Equal(t, 1700*time.Microsecond, s.Lead)
		assert.Equal(t, 2700*time.Microsecond, s.MaxLead)
	})
}

func TestBehind(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 5 * time.Millisecond, time.Second, time.Hour, 365 * 24 * time.Hour} {
		// The last ID is the first of its tick, so the next free slot is as far
		// ahead as the step went.
		stepped := func(t *testing.T, s strategies.Strategy) (*generator.Generator, *handClock, snowflake.ID) {
			c := newHandClock()
			g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(s))
			last := mustNext(t, g)
			c.step(-step)
			return g, c, last
		}
		t.Run(step.String(), func(t *testing.T) {
			t.Run("reject", func(t *testing.T) {
				g, c, last := stepped(t, strategies.Reject())
				for range 3 {
					_, err := g.Next()
					var lead *generator.LeadError
					require.ErrorAs(t, err, &lead)
					assert.Equal(t, step, lead.Lead)
				}
				c.step(step)
				assert.Equal(t, last+1, mustNext(t, g), "caught up: the tick goes on where it was")
			})
			t.Run("wait", func(t *testing.T) {
				g, c, last := stepped(t, strategies.WaitUpTo(step))
				assert.Equal(t, last+1, mustNext(t, g))
				assert.Equal(t, []time.Duration{step}, c.waited())
			})
			t.Run("wait too short", func(t *testing.T) {
				g, c, _ := stepped(t, strategies.WaitUpTo(step-1))
				_, err := g.Next()
				assert.ErrorContains(t, err, "(limit "+(step-1).String()+")")
				assert.Empty(t, c.waited(), "rejected at once")
			})
			t.Run("borrow", func(t *testing.T) {
				g, c, last := stepped(t, strategies.BorrowUpTo(step))
				assert.Equal(t, last+1, mustNext(t, g))
				assert.Empty(t, c.waited())
				assert.Equal(t, step, g.Stats().MaxLead)
				assert.EqualValues(t, 1, g.Stats().BorrowedTicks)
			})
			t.Run("borrow too short", func(t *testing.T) {
				g, _, _ := stepped(t, strategies.BorrowUpTo(step-1))
				_, err := g.Next()
				assert.ErrorIs(t, err, generator.ErrBehind)
			})
			t.Run("borrow for the other cause", func(t *testing.T) {
				g, _, _ := stepped(t, strategies.PerCause(strategies.BorrowUpTo(step), strategies.Reject()))
				_, err := g.Next()
				assert.ErrorIs(t, err, generator.ErrBehind)
			})
			t.Run("borrow, then wait", func(t *testing.T) {
				g, c, last := stepped(t, strategies.Chain(strategies.BorrowUpTo(step/4), strategies.WaitUpTo(step)))
				assert.Equal(t, last+1, mustNext(t, g))
				assert.Equal(t, []time.Duration{step - step/4}, c.waited(), "until the rest can be borrowed")
			})
			t.Run("own", func(t *testing.T) {
				g, c, last := stepped(t, borrower{})
				assert.Equal(t, last+1, mustNext(t, g))
				ids := make([]snowflake.ID, 5000) // over the end of the tick
				_, err := g.NextN(ids)
				require.NoError(t, err)
				assert.Equal(t, last+2, ids[0])
				assert.Empty(t, c.waited())
			})
		})
	}
}

// A clock that never advances: the wait ends when the strategy's time is up.
func TestFrozenClock(t *testing.T) {
	c := newHandClock()
	c.frozen = true
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithStrategy(strategies.WaitUpTo(10*time.Millisecond)))
	for range 4 {
		mustNext(t, g)
	}
	_, err := g.Next()
	var lead *generator.LeadError
	require.ErrorAs(t, err, &lead)
	assert.Equal(t, 10*time.Millisecond, lead.Waited)
	assert.ErrorContains(t, err, "after waiting 10ms")
	assert.Len(t, c.waited(), 10)
}

// The clock goes back further while a call waits for it.
func TestSecondStepWhileWaiting(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.WaitUpTo(8*time.Millisecond)))
	mustNext(t, g)
	c.step(-5 * time.Millisecond)
	c.frozen = true // the wait of 5 ms brings the clock nowhere
	_, err := g.Next()
	var lead *generator.LeadError
	require.ErrorAs(t, err, &lead)
	assert.Equal(t, 5*time.Millisecond, lead.Waited)
	assert.Equal(t, 5*time.Millisecond, lead.Lead)
}

func TestClockBeforeEpochAtRunTime(t *testing.T) {
	for name, start := range map[string]func(c *handClock, g *generator.Generator){
		"before the first ID": func(*handClock, *generator.Generator) {},
		"after an ID":         func(_ *handClock, g *generator.Generator) { mustNext(t, g) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, now := range []time.Time{time.Unix(0, 0), time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC), {}} {
				c := newHandClock()
				g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
				start(c, g)
				c.set(now)
				_, err := g.Next()
				assert.ErrorIs(t, err, generator.ErrBehind)
				_, err = g.Stream().Next()
				assert.ErrorIs(t, err, generator.ErrBehind)
				c.set(noon)
				mustNext(t, g)
			}
		})
	}
}

func TestStrategiesFromOutside(t *testing.T) {
	run := func(t *testing.T, s strategies.Func) (*handClock, error) {
		c := newHandClock()
		g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(s))
		mustNext(t, g)
		c.step(-time.Second)
		_, err := g.Next()
		return c, err
	}
	t.Run("wait without a time waits for the lead", func(t *testing.T) {
		c, err := run(t, func(strategies.Situation) strategies.Decision {
			return strategies.Decision{Action: strategies.ActionWait}
		})
		assert.NoError(t, err)
		assert.Equal(t, []time.Duration{time.Second}, c.waited())
	})
	t.Run("waits in steps", func(t *testing.T) {
		var waited []time.Duration
		c, err := run(t, func(s strategies.Situation) strategies.Decision {
			waited = append(waited, s.Waited)
			return strategies.Decision{Action: strategies.ActionWait, Wait: 400 * time.Millisecond}
		})
		assert.NoError(t, err)
		assert.Len(t, c.waited(), 3)
		assert.Equal(t, []time.Duration{0, 400 * time.Millisecond, 800 * time.Millisecond}, waited)
	})
	t.Run("an unknown action rejects", func(t *testing.T) {
		_, err := run(t, func(strategies.Situation) strategies.Decision {
			return strategies.Decision{Action: 99, Limit: time.Minute}
		})
		assert.ErrorIs(t, err, generator.ErrBehind)
	})
}

func TestRandomStart(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithSequenceStart(strategies.StartRandom(100)),
		generator.WithStrategy(strategies.BorrowUpTo(math.MaxInt64)))
	seen := map[int64]bool{}
	last := snowflake.ID(0)
	for range 2000 {
		c.step(time.Millisecond)
		id := mustNext(t, g)
		_, sequence := decode(t, g, id)
		require.Less(t, sequence, int64(100))
		require.Greater(t, id, last)
		seen[sequence] = true
		next := mustNext(t, g)
		require.Equal(t, id+1, next, "only a tick's first ID is drawn")
		last = next
	}
	assert.Len(t, seen, 100, "each of 100 starts among 2000 draws")

	for range 20 { // the first ID of all is drawn, too
		_, sequence := decode(t, g, mustNext(t, newGenerator(t, generator.WithClock(c), generator.WithSequenceStart(strategies.StartRandom(4096)))))
		seen[-sequence] = true
	}
	assert.Greater(t, len(seen), 110)

	ids := make([]snowflake.ID, 4096)
	_, err := g.NextN(ids)
	require.NoError(t, err)
	_, sequence := decode(t, g, ids[4095])
	assert.Less(t, sequence, int64(4095), "a tick that is borrowed begins at zero")

	c = newHandClock()
	g = newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithSequenceStart(strategies.StartRandom(4)))
	n, err := g.NextN(make([]snowflake.ID, 1000))
	require.NoError(t, err)
	assert.Equal(t, 1000, n)
	assert.InDelta(t, 400, c.Now().Sub(noon).Milliseconds(), 80, "a tick of 4 that begins anywhere holds 2.5 on average")
}

// A lead of years is told in years.
func TestTextOfALongLead(t *testing.T) {
	const long = 198510 * time.Hour
	for _, err := range []error{
		&generator.LeadError{Cause: strategies.Behind, Lead: long}, &generator.LeadError{Cause: strategies.Exhausted, Lead: long},
		&generator.GrantError{Past: -long}, &generator.GrantError{Past: long},
	} {
		assert.ErrorContains(t, err, "22.65 years")
		assert.NotContains(t, err.Error(), "198510h")
	}
}
