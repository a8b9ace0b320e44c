package generator_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

func TestNextCountsSlots(t *testing.T) {
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		t.Run(order.String(), func(t *testing.T) {
			c, l := newHandClock(), narrow()
			l.Order = order
			g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithNode(3))
			last := snowflake.ID(-1)
			for tick := range 3 {
				for sequence := range int64(4) {
					id := mustNext(t, g)
					at, s := decode(t, g, id)
					assert.Equal(t, time.Duration(tick)*time.Millisecond, at)
					assert.Equal(t, sequence, s)
					assert.Greater(t, id, last)
					last = id
				}
				c.step(time.Millisecond)
			}
			c.step(time.Hour + 900*time.Microsecond)
			at, s := decode(t, g, mustNext(t, g))
			assert.Equal(t, time.Hour+3*time.Millisecond, at)
			assert.Zero(t, s)
		})
	}
}

func TestNewDefaults(t *testing.T) {
	g := newGenerator(t)
	assert.Equal(t, snowflake.Default(), g.Layout())
	assert.Zero(t, g.Node())
	d, err := g.Layout().Decode(mustNext(t, g))
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), d.Time, time.Minute)
}

func TestNodeParts(t *testing.T) {
	g := newGenerator(t, generator.WithLayout(snowflake.Twitter()), generator.WithNodeParts(11, 26))
	assert.EqualValues(t, 378, g.Node())
	g = newGenerator(t, generator.WithLayout(snowflake.Twitter()), generator.WithNodeParts(11, 26), generator.WithNode(5))
	assert.EqualValues(t, 5, g.Node(), "the last option holds")
}

// What the caller does to its layout later is nothing to the generator.
func TestLayoutIsCopied(t *testing.T) {
	l := snowflake.Twitter()
	g := newGenerator(t, generator.WithLayout(l))
	l.Parts[0].Name = "changed"
	assert.Equal(t, snowflake.Twitter(), g.Layout())
	g.Layout().Parts[0].Name = "changed"
	assert.Equal(t, snowflake.Twitter(), g.Layout())
}

func TestClocksOfOthersServe(t *testing.T) {
	mock := clock.NewMock()
	mock.Set(noon)
	for name, c := range map[string]monoclock.Interface{
		"benbjohnson real": clock.New(),
		"benbjohnson mock": mock,
		"monoclock":        monoclock.New(),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(t, generator.WithClock(c))
			d, err := g.Layout().Decode(mustNext(t, g))
			require.NoError(t, err)
			assert.WithinDuration(t, c.Now(), d.Time, time.Minute)
		})
	}
}

func TestNewRefuses(t *testing.T) {
	layout := func(change func(*snowflake.Layout)) generator.Option {
		l := snowflake.Default()
		change(&l)
		return generator.WithLayout(l)
	}
	at := func(now time.Time) generator.Option { return generator.WithClock(&handClock{now: now}) }
	for name, tt := range map[string]struct {
		opts   []generator.Option
		option string
		says   []string
		is     func(error) bool
	}{
		"node too large":       {[]generator.Option{generator.WithNode(1024)}, "WithNode", []string{"1024", "1023"}, is(snowflake.ErrRange)},
		"node negative":        {[]generator.Option{generator.WithNode(-1)}, "WithNode", []string{"-1", "1023"}, is(snowflake.ErrRange)},
		"part too large":       {[]generator.Option{generator.WithLayout(snowflake.Twitter()), generator.WithNodeParts(32, 0)}, "WithNodeParts", []string{"datacenter", "32", "31"}, is(snowflake.ErrRange)},
		"parts too few":        {[]generator.Option{generator.WithLayout(snowflake.Twitter()), generator.WithNodeParts(3)}, "WithNodeParts", []string{"1", "2"}, nil},
		"parts none":           {[]generator.Option{generator.WithLayout(snowflake.Twitter()), generator.WithNodeParts()}, "WithNodeParts", []string{"0", "2"}, nil},
		"sums to 73":           {[]generator.Option{layout(func(l *snowflake.Layout) { l.TimeBits, l.NodeBits, l.SequenceBits = 37, 20, 16 })}, "WithLayout", []string{"73", "63", "4.36"}, is(snowflake.ErrLayout)},
		"negative width":       {[]generator.Option{layout(func(l *snowflake.Layout) { l.SequenceBits = -1 })}, "WithLayout", []string{"-1"}, is(snowflake.ErrLayout)},
		"over-wide":            {[]generator.Option{layout(func(l *snowflake.Layout) { l.NodeBits = 99 })}, "WithLayout", []string{"99"}, is(snowflake.ErrLayout)},
		"zero layout":          {[]generator.Option{generator.WithLayout(snowflake.Layout{})}, "WithLayout", []string{"epoch"}, is(snowflake.ErrLayout)},
		"epoch in the future":  {[]generator.Option{layout(func(l *snowflake.Layout) { l.Epoch = noon.Add(time.Hour) }), at(noon)}, "WithLayout", []string{"2026-06-01T13:00:00Z", "2026-06-01T12:00:00Z"}, is(snowflake.ErrLayout)},
		"clock before epoch":   {[]generator.Option{at(time.Unix(0, 0))}, "WithLayout", []string{"2025-01-01", "1970-01-01"}, is(snowflake.ErrLayout)},
		"time field over":      {[]generator.Option{generator.WithLayout(snowflake.Baidu()), at(noon)}, "WithLayout", []string{"2024-11-20T13:24:16Z", "2026-06-01T12:00:00Z"}, is(snowflake.ErrLayout)},
		"nil clock":            {[]generator.Option{generator.WithClock(nil)}, "WithClock", []string{"nil"}, nil},
		"nil *monoclock.Clock": {[]generator.Option{generator.WithClock((*monoclock.Clock)(nil))}, "WithClock", []string{"nil"}, nil},
		"nil strategy":         {[]generator.Option{generator.WithStrategy(nil)}, "WithStrategy", []string{"nil"}, is(strategies.ErrInvalid)},
		"nil in a chain":       {[]generator.Option{generator.WithStrategy(strategies.Chain(strategies.Reject(), nil))}, "WithStrategy", []string{"member 2 of 2"}, is(strategies.ErrInvalid)},
		"negative limit":       {[]generator.Option{generator.WithStrategy(strategies.WaitUpTo(-time.Second))}, "WithStrategy", []string{"-1s"}, is(strategies.ErrInvalid)},
		"start too wide":       {[]generator.Option{generator.WithSequenceStart(strategies.StartRandom(4097))}, "WithSequenceStart", []string{"4097", "4096"}, is(strategies.ErrInvalid)},
		"nil option":           {[]generator.Option{generator.WithNode(1), nil}, "New", []string{"option 3 of 3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := generator.New(append([]generator.Option{generator.WithNode(0)}, tt.opts...)...)
			assert.Nil(t, g)
			var config *stores.OptionError
			require.ErrorAs(t, err, &config)
			assert.Equal(t, tt.option, config.Option)
			for _, text := range append(tt.says, tt.option) {
				assert.ErrorContains(t, err, text)
			}
			if tt.is != nil {
				assert.True(t, tt.is(err), "%T %v", config.Err, err)
			}
		})
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func TestNextN(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()))
	mustNext(t, g)
	ids := make([]snowflake.ID, 10)
	n, err := g.NextN(ids)
	require.NoError(t, err)
	assert.Equal(t, 10, n)
	for i, id := range ids {
		at, sequence := decode(t, g, id)
		assert.Equal(t, time.Duration((i+1)/4)*time.Millisecond, at)
		assert.EqualValues(t, (i+1)%4, sequence)
	}
	assert.Equal(t, []time.Duration{time.Millisecond, time.Millisecond}, c.waited())
}

func TestNextNFailsHalfWay(t *testing.T) {
	c := newHandClock()
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(narrow()),
		generator.WithStrategy(strategies.WaitUpTo(2*time.Millisecond)))
	ids := make([]snowflake.ID, 100)
	n, err := g.NextN(ids)
	assert.Equal(t, 12, n, "three ticks: this one, and one for each millisecond of waiting")
	assert.ErrorIs(t, err, generator.ErrExhausted)
	for i := 1; i < n; i++ {
		assert.Greater(t, ids[i], ids[i-1])
	}
	assert.Zero(t, ids[n])
	var lead *generator.LeadError
	require.ErrorAs(t, err, &lead)
	assert.Equal(t, 2*time.Millisecond, lead.Waited, "the wait of the whole call counts")
}

func TestNextNOfNone(t *testing.T) {
	g := newGenerator(t)
	for _, none := range [][]snowflake.ID{nil, {}} {
		n, err := g.NextN(none)
		assert.Zero(t, n)
		assert.NoError(t, err)
	}
}

// TestNewNeedsANode guards that two processes do not share a node number by default.
func TestNewNeedsANode(t *testing.T) {
	for _, opts := range [][]generator.Option{nil, {generator.WithLayout(snowflake.Twitter())}} {
		_, err := generator.New(opts...)
		require.ErrorContains(t, err, "generator.Open")
	}
}

func TestContextEndedBefore(t *testing.T) {
	g := newGenerator(t)
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for name, call := range map[string]func() error{
		"NextContext":  func() error { _, err := g.NextContext(ctx); return err },
		"NextNContext": func() error { _, err := g.NextNContext(ctx, make([]snowflake.ID, 1)); return err },
		"Stream":       func() error { _, err := g.Stream().NextContext(ctx); return err },
		"All": func() (err error) {
			for _, e := range g.All(ctx) {
				require.NoError(t, err, "an element after the error")
				err = e
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, cause)
		})
	}
}

func TestClose(t *testing.T) {
	g := newGenerator(t)
	s := g.Stream()
	for range 10 { // into the middle of a block
		_, err := s.Next()
		require.NoError(t, err)
	}
	require.NoError(t, g.Close())
	require.NoError(t, g.Close(), "again")
	ids := make([]snowflake.ID, 3)
	id, err := g.Next()
	assert.Zero(t, id)
	assert.ErrorIs(t, err, generator.ErrClosed)
	_, err = g.NextContext(context.Background())
	assert.ErrorIs(t, err, generator.ErrClosed)
	n, err := g.NextN(ids)
	assert.Zero(t, n)
	assert.ErrorIs(t, err, generator.ErrClosed)
	_, err = s.Next()
	assert.ErrorIs(t, err, generator.ErrClosed, "a stream with a block in hand")
	for id, err := range g.All(context.Background()) {
		assert.Zero(t, id)
		assert.ErrorIs(t, err, generator.ErrClosed)
	}
	assert.Zero(t, g.Stats().Lead)
}

func TestEndOfTime(t *testing.T) {
	end := noon.Add(4 * time.Millisecond) // 2 bits of 1 ms
	l := snowflake.Layout{Epoch: noon, Tick: time.Millisecond, TimeBits: 2, NodeBits: 1, SequenceBits: 1}
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		for name, strategy := range map[string]strategies.Strategy{
			"reject": strategies.Reject(), "wait": strategies.Wait(), "borrow": strategies.BorrowUpTo(math.MaxInt64),
			"own": borrower{},
		} {
			t.Run(order.String()+"/"+name, func(t *testing.T) {
				l.Order = order
				c := newHandClock()
				c.set(end.Add(-time.Millisecond))
				g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategy), generator.WithNode(1))
				a, b := mustNext(t, g), mustNext(t, g)
				assert.Greater(t, b, a)
				assert.EqualValues(t, 15, b, "the last ID of a layout of 4 bits")
				for range 3 {
					id, err := g.Next()
					assert.Zero(t, id)
					require.ErrorIs(t, err, lease.ErrEndOfTime)
					assert.ErrorContains(t, err, "2026-06-01T12:00:00.004Z")
					c.step(time.Hour)
				}
				_, err := g.Stream().Next()
				assert.ErrorIs(t, err, lease.ErrEndOfTime)
				n, err := g.NextN(make([]snowflake.ID, 3))
				assert.Zero(t, n)
				assert.ErrorIs(t, err, lease.ErrEndOfTime)
			})
		}
	}
}

// The clock leaves the time field while slots are left in it.
func TestEndOfTimeByTheClock(t *testing.T) {
	c := newHandClock()
	l := snowflake.Layout{Epoch: noon, Tick: time.Millisecond, TimeBits: 2, NodeBits: 0, SequenceBits: 20}
	g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	mustNext(t, g)
	s := g.Stream()
	_, err := s.Next()
	require.NoError(t, err)
	for _, at := range []time.Duration{4 * time.Millisecond, time.Hour, 100 * 365 * 24 * time.Hour, math.MaxInt64} {
		c.set(noon.Add(at))
		_, err := g.Next()
		assert.ErrorIs(t, err, lease.ErrEndOfTime, "%s after the epoch", at)
		_, err = s.Next()
		assert.ErrorIs(t, err, lease.ErrEndOfTime, "%s after the epoch", at)
	}
}

// A layout may last longer than the 292 years that a Duration holds.
func TestLongLayouts(t *testing.T) {
	for _, l := range []snowflake.Layout{
		{Epoch: noon.AddDate(-50, 0, 0), Tick: time.Hour, TimeBits: 61, SequenceBits: 2},
		{Epoch: noon.AddDate(-50, 0, 0), Tick: 1, TimeBits: 62, SequenceBits: 0, NodeBits: 1},
		{Epoch: noon.AddDate(-50, 0, 0), Tick: time.Nanosecond, TimeBits: 62, SequenceBits: 1},
	} {
		c := newHandClock()
		g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithStrategy(strategies.BorrowUpTo(math.MaxInt64)))
		a, b := mustNext(t, g), mustNext(t, g)
		c.step(50 * 365 * 24 * time.Hour)
		d := mustNext(t, g)
		assert.Less(t, a, b)
		assert.Less(t, b, d)
		got, err := l.Decode(d)
		require.NoError(t, err)
		assert.Equal(t, c.Now().Truncate(l.Tick), got.Time)
	}
}

func TestNextRun(t *testing.T) {
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		t.Run(order.String(), func(t *testing.T) {
			c, l := newHandClock(), narrow()
			l.Order = order
			g := newGenerator(t, generator.WithClock(c), generator.WithLayout(l), generator.WithNode(3), generator.WithStrategy(strategies.Reject()))
			mustNext(t, g)
			run, err := g.NextRun(t.Context(), 2)
			require.NoError(t, err)
			rest, err := g.NextRun(t.Context(), math.MaxInt64)
			require.NoError(t, err)
			assert.Equal(t, int64(2), run.Count)
			assert.Equal(t, int64(1), rest.Count, "the rest of the tick")
			for sequence, id := range map[int64]snowflake.ID{1: run.First, 2: run.Last(), 3: rest.First} {
				at, s := decode(t, g, id)
				assert.Zero(t, at)
				assert.Equal(t, sequence, s)
			}
			assert.Equal(t, run.At(2), rest.First)

			_, err = g.NextRun(t.Context(), 1)
			assert.ErrorIs(t, err, generator.ErrExhausted)
			c.step(time.Millisecond)
			run, err = g.NextRun(t.Context(), -1)
			require.NoError(t, err)
			assert.Equal(t, int64(1), run.Count)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = g.NextRun(ended, 1)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
}
