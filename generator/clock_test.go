package generator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// noon is when the tests' clocks begin.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// handClock is a clock that is set by hand. Whoever waits for it moves it on by
// as much as it is to wait, unless it is frozen.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	frozen bool
	waits  []time.Duration
}

func newHandClock() *handClock { return &handClock{now: noon} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
	if !c.frozen {
		c.now = c.now.Add(d)
	}
	ready := make(chan time.Time, 1)
	ready <- c.now
	return ready
}

func (c *handClock) step(d time.Duration) { c.set(c.Now().Add(d)) }

func (c *handClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// waited returns the waits since the last call.
func (c *handClock) waited() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := c.waits
	c.waits = nil
	return waits
}

// wallClock is the machine's clock plus an offset that can be stepped. It is
// waited for in the machine's time.
type wallClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *wallClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.offset)
}

func (c *wallClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// narrow holds 4 IDs per millisecond on each of 4 nodes.
func narrow() snowflake.Layout {
	return snowflake.Layout{
		Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Tick: time.Millisecond,
		TimeBits: 41, NodeBits: 2, SequenceBits: 2,
	}
}

func newGenerator(t testing.TB, opts ...generator.Option) *generator.Generator {
	t.Helper()
	g, err := generator.New(append([]generator.Option{generator.WithNode(0)}, opts...)...)
	require.NoError(t, err)
	return g
}

func mustNext(t testing.TB, g *generator.Generator) snowflake.ID {
	t.Helper()
	id, err := g.Next()
	require.NoError(t, err)
	return id
}

// decode returns id's time, as a distance from noon, and its sequence number.
func decode(t testing.TB, g *generator.Generator, id snowflake.ID) (time.Duration, int64) {
	t.Helper()
	d, err := g.Layout().Decode(id)
	require.NoError(t, err)
	require.Equal(t, g.Node(), d.Node)
	return d.Time.Sub(noon), d.Sequence
}
