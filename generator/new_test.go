package generator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// What the caller does to its layout later is nothing to the generator.
func TestLayoutIsCopied(t *testing.T) {
	l := snowflake.Twitter()
	g := newGenerator(t, generator.WithLayout(l))
	l.Parts[0].Name = "changed"
	assert.Equal(t, snowflake.Twitter(), g.Layout())
	g.Layout().Parts[0].Name = "changed"
	assert.Equal(t, snowflake.Twitter(), g.Layout())
}

func TestNewRefuses(t *testing.T) {
	layout := func(change func(*snowflake.Layout)) generator.Option {
		l := snowflake.Default()
		change(&l)
		return generator.WithLayout(l)
	}
	at := func(now time.Time) generator.Option {
		return generator.WithClock(&handClock{wallClock: wallClock{stopped: true, now: now}})
	}
	seen, err := snowflake.Default().Min(noon.Add(10 * time.Second)) // the IDs above it begin a tick later
	require.NoError(t, err)
	_, err = generator.New(generator.WithLayout(snowflake.Twitter()))
	require.ErrorContains(t, err, "generator.Open", "two processes do not share a node number by default")
	for name, tt := range map[string]struct {
		opts   []generator.Option
		option string
		says   []string
		is     func(error) bool
	}{
		"node too large":       {[]generator.Option{generator.WithNode(1024)}, "WithNode", []string{"1024", "1023"}, is(snowflake.ErrRange)},
		"node negative":        {[]generator.Option{generator.WithNode(-1)}, "WithNode", []string{"-1", "1023"}, is(snowflake.ErrRange)},
		"zero layout":          {[]generator.Option{generator.WithLayout(snowflake.Layout{})}, "WithLayout", []string{"epoch"}, is(snowflake.ErrLayout)},
		"epoch in the future":  {[]generator.Option{layout(func(l *snowflake.Layout) { l.Epoch = noon.AddDate(9, 0, 0) }), at(noon)}, "WithLayout", []string{"2035-06-01T12:00:00Z", "2026-06-01T12:00:00Z"}, is(snowflake.ErrLayout)},
		"clock before epoch":   {[]generator.Option{at(time.Unix(0, 0))}, "WithClock", []string{"2025-01-01", "1970-01-01"}, is(snowflake.ErrEarly)},
		"time field over":      {[]generator.Option{generator.WithLayout(snowflake.Baidu()), at(noon)}, "WithLayout", []string{"2024-11-20T13:24:16Z", "2026-06-01T12:00:00Z"}, is(snowflake.ErrLayout)},
		"nil clock":            {[]generator.Option{generator.WithClock(nil)}, "WithClock", []string{"nil"}, nil},
		"nil *monoclock.Clock": {[]generator.Option{generator.WithClock((*monoclock.Clock)(nil))}, "WithClock", []string{"nil"}, nil},
		"nil strategy":         {[]generator.Option{generator.WithStrategy(nil)}, "WithStrategy", []string{"nil"}, is(strategies.ErrInvalid)},
		"start too wide":       {[]generator.Option{generator.WithSequenceStart(strategies.StartRandom(4097))}, "WithSequenceStart", []string{"4097", "4096"}, is(strategies.ErrInvalid)},
		"nil option":           {[]generator.Option{generator.WithNode(1), nil}, "New", []string{"option 3 of 3"}, nil},
		"IDs after far ahead":  {[]generator.Option{at(noon), generator.WithFloor(seen)}, "WithFloor", []string{"10.001s ahead of the clock"}, nil},
		"IDs after negative":   {[]generator.Option{at(noon), generator.WithFloor(-1)}, "WithFloor", []string{"negative"}, nil},
		"IDs after the end":    {[]generator.Option{at(noon), generator.WithFloor(math.MaxInt64)}, "WithFloor", []string{"ahead of the clock"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append([]generator.Option{generator.WithNode(0)}, tt.opts...)
			var config *stores.OptionError
			_, err := generator.Open(t.Context(), "no-such-engine://", opts...)
			require.ErrorAs(t, err, &config, "before anything is opened")
			g, err := generator.New(opts...)
			assert.Nil(t, g)
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

// A lead of years is told in years, and one that only a wrong clock brings is no matter of the strategy. The end of a
// context is told once.
func TestTexts(t *testing.T) {
	const long = 198510 * time.Hour
	for _, err := range []error{
		&generator.LeadError{Cause: strategies.Behind, Lead: long}, &generator.LeadError{Cause: strategies.Exhausted, Lead: long},
		&generator.GrantError{Past: -long}, &generator.GrantError{Past: long},
	} {
		assert.ErrorContains(t, err, "22.65 years")
		assert.NotContains(t, err.Error(), "198510h")
	}
	for lead, advised := range map[time.Duration]bool{time.Hour: true, time.Hour + 1: false} {
		err := &generator.LeadError{Cause: strategies.Behind, Lead: lead, Limit: time.Second}
		assert.Equal(t, advised, strings.Contains(err.Error(), "strategy"), err)
	}
	twice := &generator.GrantError{Err: fmt.Errorf("read: %w", context.DeadlineExceeded), Context: context.DeadlineExceeded}
	assert.Equal(t, 1, strings.Count(twice.Error(), "deadline exceeded"), twice)
}
