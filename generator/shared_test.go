package generator_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Generators of one number, made at any time by any goroutine, never issue an ID twice, and IDs of one after
// the other ascend.
func TestOneNumber(t *testing.T) {
	var group sync.WaitGroup
	var seen sync.Map
	named := snowflake.Twitter()
	bare := named
	bare.Name, bare.Parts = "", nil
	for i := range 8 {
		layout := []snowflake.Layout{named, bare}[i%2] // their IDs are the same
		group.Go(func() {
			last := snowflake.ID(0)
			for range 500 {
				g, err := generator.New(generator.WithNode(1), generator.WithLayout(layout))
				if !assert.NoError(t, err) {
					return
				}
				id, err := g.Next()
				assert.NoError(t, err)
				_, twice := seen.LoadOrStore(id, true)
				assert.False(t, twice || id < last, "%d after %d", id, last)
				last = id
				if i < 4 {
					assert.NoError(t, g.Close())
				}
			}
		})
	}
	group.Wait()
}

// What is a generator's own: Close, the ID that its own come after, a clock that it was given.
func TestOneNumberApart(t *testing.T) {
	make := func(options ...generator.Option) *generator.Generator {
		return newGenerator(t, append(options, generator.WithNode(2), generator.WithStrategy(strategies.Wait()))...)
	}
	a, b := make(), make()
	stream := a.Stream()
	_, err := stream.Next()
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err = a.Next()
	require.ErrorIs(t, err, generator.ErrClosed)
	seen := mustNext(t, b) + 1<<30 // a quarter of a second ahead
	above := make(generator.WithFloor(seen))
	require.Greater(t, mustNext(t, above), seen)
	require.Greater(t, mustNext(t, b), seen, "it has the same word")
	far := monoclock.New()
	c := make(generator.WithClock(far))
	require.Same(t, far, c.Clock())
	require.NotSame(t, far, b.Clock())
	require.NoError(t, c.Close())
	mustNext(t, b)
	_, err = stream.Next()
	require.ErrorIs(t, err, generator.ErrClosed, "its tick is over")
}

// The time of a bubble is a fake clock, which has nothing in common with that outside, or of another bubble.
func TestOneNumberInBubbles(t *testing.T) {
	mustNext(t, newGenerator(t, generator.WithNode(3)))
	for range 2 {
		inBubble(t, func(t *testing.T) {
			time.Sleep(time.Second)
			g := newGenerator(t, generator.WithNode(3))
			d, err := g.Layout().Decode(mustNext(t, g))
			require.NoError(t, err)
			require.Equal(t, time.Now().UTC(), d.Time)
		})
	}
}

// The number's clock is the one that is checked, and is replaced when no generator uses it. The word stays, so no ID
// comes twice.
func TestOneNumbersClock(t *testing.T) {
	make := func(options ...generator.Option) (*generator.Generator, error) {
		return generator.New(append(options, generator.WithNode(4))...)
	}
	a, err := make()
	require.NoError(t, err)
	b, err := make()
	require.NoError(t, err)
	require.Same(t, a.Clock(), b.Clock())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	c, err := make()
	require.NoError(t, err)
	require.Same(t, b.Clock(), c.Clock(), "b uses it")
	seen := map[snowflake.ID]bool{}
	for range 5000 { // more than a tick's
		seen[mustNext(t, b)] = true
	}
	require.NoError(t, b.Close())
	require.NoError(t, c.Close())
	_, err = make(generator.WithFloor(math.MaxInt64))
	require.Error(t, err, "and holds no clock")
	d, err := make()
	require.NoError(t, err)
	require.NotSame(t, c.Clock(), d.Clock())
	for range 5000 {
		id := mustNext(t, d)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.NoError(t, d.Close())
}
