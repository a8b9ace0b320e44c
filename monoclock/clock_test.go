package monoclock_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/monoclock"
)

// source is a Source whose wall and monotonic time are set by hand.
type source struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func newSource() *source { return &source{wall: noon, elapsed: 42 * time.Hour} }

func (s *source) Wall() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wall
}

func (s *source) Elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elapsed
}

func (s *source) After(time.Duration) <-chan time.Time { panic("a Clock waits for nothing") }

// pass lets d go by on both clocks.
func (s *source) pass(d time.Duration) { s.move(d, d) }

// step moves the wall clock alone.
func (s *source) step(d time.Duration) { s.move(d, 0) }

func (s *source) move(wall, elapsed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = s.wall.Add(wall)
	s.elapsed += elapsed
}

func TestClockKeepsItsBase(t *testing.T) {
	for _, step := range []time.Duration{-time.Millisecond, -time.Second, -time.Hour, -365 * 24 * time.Hour, time.Hour} {
		s := newSource()
		c := monoclock.New(monoclock.WithSource(s))
		assert.Equal(t, noon, c.Now())
		s.pass(3 * time.Second)
		assert.Equal(t, noon.Add(3*time.Second), c.Now())

		s.step(step)
		assert.Equal(t, noon.Add(3*time.Second), c.Now(), "after a step of %s", step)
		assert.Equal(t, step, c.Drift())
		s.pass(time.Nanosecond)
		assert.Equal(t, noon.Add(3*time.Second+1).UnixNano(), c.UnixNano())
	}
}

func TestClockLagsBySuspendAndSlew(t *testing.T) {
	s := newSource()
	c := monoclock.New(monoclock.WithSource(s))
	s.move(time.Hour, 0) // suspend: monotonic time stands still
	assert.Equal(t, noon, c.Now())
	assert.Equal(t, time.Hour, c.Drift())
	s.move(500*time.Millisecond, time.Second) // slew: the wall runs at half speed
	assert.Equal(t, noon.Add(time.Second), c.Now())
	assert.Equal(t, time.Hour-500*time.Millisecond, c.Drift())
}

func TestDriftSaturates(t *testing.T) {
	s := newSource()
	c := monoclock.New(monoclock.WithSource(s))
	s.wall = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, time.Duration(math.MaxInt64), c.Drift())
	s.wall = time.Time{}
	assert.Equal(t, time.Duration(math.MinInt64), c.Drift())
}

func TestResync(t *testing.T) {
	const threshold, limit = time.Second, time.Hour
	for name, tt := range map[string]struct {
		drift, caughtUp time.Duration
	}{
		"behind":           {-time.Hour, 0},
		"none":             {0, 0},
		"at the threshold": {threshold, 0},
		"above it":         {threshold + 1, threshold + 1},
		"at the limit":     {limit, limit},
		"above the limit":  {limit + 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource()
			c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(threshold, limit))
			s.step(tt.drift)
			assert.Equal(t, noon, c.Now(), "a second has not passed yet")
			s.pass(time.Second)
			assert.Equal(t, noon.Add(time.Second+tt.caughtUp), c.Now())
			assert.Equal(t, tt.drift-tt.caughtUp, c.Drift())
		})
	}
}

// With a threshold below zero a wall clock that is behind would pull it back.
func TestResyncNeverGoesBack(t *testing.T) {
	s := newSource()
	c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(-time.Second, time.Hour))
	s.step(-500 * time.Millisecond)
	s.pass(time.Second)
	assert.Equal(t, noon.Add(time.Second), c.Now())
}

// A wall clock that is centuries ahead is ignored, with any limit, and a
// Clock made under it stays within its range.
func TestWildWallClocks(t *testing.T) {
	for _, year := range []int{2201, 2290, 9999} {
		s := newSource()
		c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(0, math.MaxInt64))
		s.wall = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		s.pass(time.Second)
		assert.Equal(t, noon.Add(time.Second), c.Now())

		c = monoclock.New(monoclock.WithSource(s))
		before := c.Now()
		assert.Equal(t, 2200, before.Year())
		s.pass(50 * 365 * 24 * time.Hour)
		assert.True(t, c.Now().After(before))
	}
	s := newSource()
	s.wall = time.Time{}
	assert.Equal(t, 1970, monoclock.New(monoclock.WithSource(s)).Now().Year())
}

// heldSource holds up the first look at the wall clock until it is let go.
type heldSource struct {
	*source
	looks      atomic.Int64
	held, free chan struct{}
}

func (s *heldSource) Wall() time.Time {
	wall := s.source.Wall()
	if s.looks.Add(1) == 2 { // the first is New's
		close(s.held)
		<-s.free
	}
	return wall
}

// A reader that is held up while it looks at the wall clock does not add a drift
// that another has added meanwhile.
func TestResyncAddsADriftOnce(t *testing.T) {
	s := &heldSource{source: newSource(), held: make(chan struct{}), free: make(chan struct{})}
	c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(0, time.Hour))
	s.step(time.Minute)
	s.pass(time.Second)
	var slow errgroup.Group
	slow.Go(func() error { c.Now(); return nil })
	<-s.held
	s.pass(time.Second)
	c.Now()
	assert.Equal(t, noon.Add(time.Minute+2*time.Second), c.Now())
	close(s.free)
	require.NoError(t, slow.Wait())
	assert.Equal(t, noon.Add(time.Minute+2*time.Second), c.Now())
}

// One look per second, however many readings.
func TestResyncWaitsBetweenLooks(t *testing.T) {
	s := newSource()
	c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(0, time.Hour))
	s.pass(time.Second)
	c.Now()
	s.step(time.Minute)
	s.pass(time.Second - 1)
	assert.Equal(t, noon.Add(2*time.Second-1), c.Now())
	s.pass(1)
	assert.Equal(t, noon.Add(2*time.Second+time.Minute), c.Now())
}

func TestResyncIsOffByDefaultAndWithoutRange(t *testing.T) {
	for name, opts := range map[string][]monoclock.Option{
		"default":           nil,
		"nil option":        {nil},
		"limit = threshold": {monoclock.WithResync(time.Second, time.Second)},
		"negative limit":    {monoclock.WithResync(-2, -1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource()
			c := monoclock.New(append(opts, monoclock.WithSource(s))...)
			s.step(time.Minute)
			s.pass(time.Hour)
			assert.Equal(t, noon.Add(time.Hour), c.Now())
		})
	}
}

// Many readers meet every due look. Each reader's time never goes back, and a
// drift is added once however many of them saw it.
func TestResyncAmongReaders(t *testing.T) {
	s := newSource()
	c := monoclock.New(monoclock.WithSource(s), monoclock.WithResync(0, time.Hour))
	const looks = 2000
	var readers errgroup.Group
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() error {
			last := int64(0)
			for {
				now := c.UnixNano()
				if now < last {
					t.Errorf("went back by %s", time.Duration(last-now))
				}
				last = now
				select {
				case <-done:
					return nil
				default:
				}
			}
		})
	}
	for range looks {
		s.move(time.Second+time.Millisecond, time.Second)
		c.UnixNano()
	}
	close(done)
	assert.NoError(t, readers.Wait())
	assert.LessOrEqual(t, c.UnixNano(), s.Wall().UnixNano(), "ran ahead of the wall clock")
}

// The machine's own clocks, with testing/synctest's time in their place.
func TestSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := monoclock.New()
		assert.Nil(t, c.Source())
		time.Sleep(90 * time.Minute)
		assert.Equal(t, begin.Add(90*time.Minute).UnixNano(), c.UnixNano())
		assert.Equal(t, begin.Add(90*time.Minute).UTC(), c.Now())
		assert.Zero(t, c.Drift())
	})
}

func TestReadingDoesNotAllocate(t *testing.T) {
	c := monoclock.New(monoclock.WithResync(time.Millisecond, time.Hour))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.UnixNano(); c.Now(); c.Drift() }))
}

// In a bubble no time passes between two readings.
func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := monoclock.New()
		time.Sleep(time.Hour) // in the bubble's time
		start, base, ok := seam.Steady(c)
		require.True(t, ok)
		for range 3 {
			assert.Equal(t, c.UnixNano(), base+int64(time.Since(start)))
			time.Sleep(time.Minute)
		}
	})
	for name, c := range map[string]monoclock.Interface{
		"source": monoclock.New(monoclock.WithSource(newSource())),
		"resync": monoclock.New(monoclock.WithResync(0, time.Second)),
		"nil":    (*monoclock.Clock)(nil),
		"other":  struct{ monoclock.Interface }{monoclock.New()},
	} {
		_, _, ok := seam.Steady(c)
		assert.False(t, ok, name)
	}
}
