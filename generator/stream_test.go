package generator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func streamNext(t testing.TB, s *generator.Stream) snowflake.ID {
	t.Helper()
	id, err := s.Next()
	require.NoError(t, err)
	return id
}

// The gap between a stream's ID and the next one of Next shows how large its
// block is.
func TestStreamBlocks(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c))
	s := g.Stream()
	left := func() int64 { // slots that the stream holds and has not issued
		_, own := decode(t, g, streamNext(t, s))
		_, next := decode(t, g, mustNext(t, g))
		return next - own - 1
	}
	assert.EqualValues(t, 0, left(), "the first block is one slot")
	for range 3 {
		c.step(time.Millisecond)
		assert.EqualValues(t, 1, left(), "one ID per tick drops one slot per tick")
	}
	var most int64
	for range 600 {
		most = max(most, left())
	}
	assert.EqualValues(t, 255, most, "a busy stream takes up to a sixteenth of the tick at a time")
	c.step(time.Millisecond)
	left() // the first slot of a block by the use that the last one saw
	c.step(time.Millisecond)
	assert.EqualValues(t, 1, left(), "and one that has become slow does not")
}

// In a layout with many slots per tick, the largest block is 1024 slots.
func TestStreamBlockIsBounded(t *testing.T) {
	g := newGenerator(t, generator.WithClock(newHandClock()), generator.WithLayout(wide()))
	s := g.Stream()
	var most int64
	for range 3000 {
		_, own := decode(t, g, streamNext(t, s))
		_, next := decode(t, g, mustNext(t, g))
		most = max(most, next-own-1)
	}
	assert.EqualValues(t, 1023, most)
}

func TestStreamBlockDiesWithItsTick(t *testing.T) {
	for name, opts := range map[string][]generator.Option{
		"wait":   nil,
		"borrow": {generator.WithStrategy(strategies.BorrowUpTo(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHandClock()
			g := newGenerator(t, append(opts, generator.WithClock(c))...)
			s := g.Stream()
			for range 10 {
				streamNext(t, s)
			}
			c.step(time.Millisecond)
			at, _ := decode(t, g, streamNext(t, s))
			assert.Equal(t, time.Millisecond, at, "by the clock")
			for range 10 {
				streamNext(t, s)
			}
			c.step(time.Millisecond)
			mustNext(t, g)
			c.step(-time.Millisecond)
			id := streamNext(t, s)
			at, _ = decode(t, g, id)
			assert.Equal(t, 2*time.Millisecond, at, "because another caller is in a later tick")
		})
	}
}

func TestStreamGoesOnThroughABorrow(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()), generator.WithStrategy(strategies.BorrowUpTo(2*time.Millisecond)))
	s := g.Stream()
	for i := range 12 {
		at, sequence := decode(t, g, streamNext(t, s))
		assert.Equal(t, time.Duration(i/4)*time.Millisecond, at)
		assert.EqualValues(t, i%4, sequence)
	}
	_, err := s.Next()
	assert.ErrorIs(t, err, generator.ErrBehind)
	c.step(time.Millisecond)
	at, _ := decode(t, g, streamNext(t, s))
	assert.Equal(t, 3*time.Millisecond, at)
}

func TestStreamBehind(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.Reject()))
	s := g.Stream()
	for range 10 { // 5 slots of the last block left
		streamNext(t, s)
	}
	c.step(-time.Second)
	_, err := s.Next()
	assert.ErrorIs(t, err, generator.ErrBehind, "a block ahead of the clock is not issued")
	c.step(time.Second)
	at, sequence := decode(t, g, streamNext(t, s))
	assert.Zero(t, at)
	assert.EqualValues(t, 10, sequence, "the block is used when the clock is back in its tick")
}

// A block serves a whole borrow: no slot is lost while the clock is behind.
func TestStreamKeepsItsBlockThroughABorrow(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	s := g.Stream()
	for range 100 {
		streamNext(t, s)
	}
	c.step(-time.Minute)
	last := streamNext(t, s)
	for range 500 {
		id := streamNext(t, s)
		require.Equal(t, last+1, id)
		last = id
	}
}

func TestStreamOnAnOwnBorrowLosesNoSlot(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithStrategy(borrower{}))
	s := g.Stream()
	last := streamNext(t, s)
	c.step(-time.Minute)
	for range 100 {
		id := streamNext(t, s)
		require.LessOrEqual(t, id, last+2, "at most the rest of the block that the step ended")
		last = id
	}
}

// A strategy that borrows in its own way is asked for each slot, and what it
// grants is one: a longer block would take slots that it has not granted, and lose
// them, as the block is not issued while the clock is behind its tick.
func TestStreamTakesOneSlotOfAnOwnBorrow(t *testing.T) {
	for name, step := range map[string]time.Duration{"behind": -time.Minute, "exhausted": 0} {
		t.Run(name, func(t *testing.T) {
			c, asked := newHandClock(), 0
			g := newGenerator(t, generator.WithClock(c),
				generator.WithStrategy(strategies.Func(func(strategies.Situation) strategies.Decision {
					asked++
					return strategies.Decision{Action: strategies.ActionBorrow}
				})))
			s := g.Stream()
			for range 1000 { // until its blocks are long
				streamNext(t, s)
			}
			c.step(step)
			last := mustNext(t, g)
			for asked == 0 { // until the tick is used up
				last = mustNext(t, g)
			}
			before := asked
			for range 100 {
				own := streamNext(t, s)
				require.Equal(t, last+1, own, "nothing was skipped")
				last = mustNext(t, g)
				require.Equal(t, own+1, last, "the stream took one slot")
			}
			assert.Equal(t, 200, asked-before, "and asked for it")
		})
	}
}

func TestAll(t *testing.T) {
	g := newGenerator(t)
	last := snowflake.ID(-1)
	n := 0
	for id, err := range g.All(context.Background()) {
		require.NoError(t, err)
		require.Greater(t, id, last)
		last = id
		if n++; n == 1000 {
			break
		}
	}
	assert.Equal(t, 1000, n)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs []error
	for _, err := range g.All(ctx) {
		errs = append(errs, err)
		cancel()
	}
	require.Len(t, errs, 2)
	assert.NoError(t, errs[0])
	assert.ErrorIs(t, errs[1], context.Canceled)
}
