package clocktest_test

import (
	"context"
	"math/rand"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

func TestAdvanceWakesInOrder(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	v.Slew(2, time.Hour)
	three, one, also, late := v.After(3*sec), v.After(sec), v.After(sec), v.After(time.Minute)
	assert.Equal(t, []time.Duration{sec, sec, 3 * sec, time.Minute}, v.Waiting())

	assert.Zero(t, v.Advance(sec-1))
	assert.Zero(t, v.Advance(-sec), "time does not go back")
	assert.Equal(t, sec-1, v.Passed())
	assert.Equal(t, []time.Duration{1, 1, 2*sec + 1, 59*sec + 1}, v.Waiting())

	assert.Equal(t, 3, v.Advance(9*sec+1))
	assert.Equal(t, 10*sec, v.Passed())
	assert.Equal(t, noon.Add(2*sec), <-one, "the wall stands at the deadline")
	assert.Equal(t, noon.Add(2*sec), <-also)
	assert.Equal(t, noon.Add(6*sec), <-three)
	assert.Equal(t, []time.Duration{50 * sec}, v.Waiting())
	assert.Empty(t, late)
}

func TestWakeNextWakesOne(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	_, ok := v.WakeNext()
	assert.False(t, ok)
	late, first, second := v.After(2*sec), v.After(sec), v.After(sec)
	for i, want := range []struct {
		passes time.Duration
		wakes  <-chan time.Time
	}{{sec, first}, {0, second}, {sec, late}} {
		passed, ok := v.WakeNext()
		require.True(t, ok)
		assert.Equal(t, want.passes, passed)
		require.Len(t, want.wakes, 1)
		assert.Equal(t, v.Wall(), <-want.wakes)
		assert.Len(t, v.Waiting(), 2-i)
	}
	_, ok = v.WakeNext()
	assert.False(t, ok)
	assert.Equal(t, 2*sec, v.Passed())
}

// One of several with the same deadline is left over by WakeNext. It needs no time,
// only another call.
func TestAdvanceByNothingWakesThoseDue(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	for _, nothing := range []time.Duration{0, -1, -forever} {
		v.After(sec)
		v.After(sec)
		v.WakeNext()
		assert.Equal(t, []time.Duration{0}, v.Waiting())
		assert.Equal(t, 1, v.Advance(nothing))
	}
}

// Random waits end in the order of their deadlines, and of equal ones in that of
// their beginnings.
func TestWakingOrderAgainstSort(t *testing.T) {
	type wait struct {
		deadline time.Duration
		over     <-chan time.Time
	}
	random := rand.New(rand.NewSource(1))
	for range 50 {
		v := clocktest.NewVirtual(noon)
		var waits []wait
		for range 40 {
			d := time.Duration(1 + random.Intn(20))
			waits = append(waits, wait{v.Passed() + d, v.After(d)})
			if random.Intn(4) == 0 && v.Waiting()[0] > 1 {
				v.Advance(1)
			}
		}
		sort.SliceStable(waits, func(i, j int) bool { return waits[i].deadline < waits[j].deadline })
		for _, w := range waits {
			_, ok := v.WakeNext()
			require.True(t, ok)
			require.Len(t, w.over, 1)
			require.Equal(t, w.deadline, v.Passed())
		}
	}
}

func TestNoWaitForNothing(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		c.pass(sec)
		for _, d := range []time.Duration{0, -1, -forever} {
			over := c.After(d)
			require.Len(t, over, 1)
			assert.Equal(t, noon.Add(sec), (<-over).UTC())
			c.Sleep(d)
		}
		assert.Empty(t, c.Waiting())
		assert.Equal(t, sec, c.Passed())
	})
}

func TestSleep(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		var woke atomic.Bool
		go func() {
			c.Sleep(sec)
			woke.Store(true)
		}()
		synctest.Wait()
		c.pass(sec - 1)
		synctest.Wait()
		assert.False(t, woke.Load())
		c.pass(1)
		synctest.Wait()
		assert.True(t, woke.Load())
	})
}

func TestAutoAdvance(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	due, same, late := v.After(sec), v.After(2*sec), v.After(time.Hour)
	v.AutoAdvance(true)
	over := v.After(2 * sec)
	require.Len(t, over, 1)
	assert.Equal(t, noon.Add(2*sec), <-over)
	assert.Equal(t, noon.Add(sec), <-due, "woken on the way")
	assert.Equal(t, noon.Add(2*sec), <-same)
	assert.Empty(t, late)
	v.Sleep(sec)
	assert.Equal(t, 3*sec, v.Passed())

	v.AutoAdvance(false)
	assert.Empty(t, v.After(sec))
	assert.Equal(t, 3*sec, v.Passed())
}

// A generator waits on a Virtual by the clock, so it takes exactly as long as its
// ceiling says.
func TestGeneratorWaitsByTheClock(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	v.AutoAdvance(true)
	layout := snowflake.Default()
	layout.SequenceBits = 4
	gen, err := generator.New(generator.WithNode(0), generator.WithClock(v), generator.WithLayout(layout), generator.WithStrategy(strategies.Wait()))
	require.NoError(t, err)
	for range 16_000 {
		_, err := gen.Next()
		require.NoError(t, err)
	}
	assert.Equal(t, 999*ms, v.Passed())
}

func TestRestartForgets(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	before := v.After(sec)
	v.Restart()
	assert.Empty(t, v.Waiting())
	after := v.After(2 * sec)
	assert.Equal(t, 1, v.Advance(time.Hour))
	assert.Empty(t, before)
	assert.Len(t, after, 1)
}

func TestOnRead(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		calls := 0
		c.OnRead(func() {
			calls++
			c.Step(-sec) // would deadlock under a lock
		})
		assert.Equal(t, noon.Add(-sec), c.Now(), "the reading shows the change")
		assert.Equal(t, noon.Add(-2*sec), c.Wall())
		assert.Zero(t, c.Elapsed())
		assert.Equal(t, 3, calls)

		c.Passed()
		c.Waiting()
		c.After(0)
		c.pass(sec)
		assert.Equal(t, 3, calls, "no readings")
		c.OnRead(nil)
		c.Now()
		assert.Equal(t, 3, calls)
	})
}

// A reader is held up between two readings, and an hour passes there.
func TestOnReadHoldsAReader(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		var reading atomic.Int32
		hold := make(chan struct{})
		c.OnRead(func() {
			if reading.Add(1) == 2 {
				<-hold
			}
		})
		took := make(chan time.Duration)
		go func() {
			began := c.Elapsed()
			took <- c.Elapsed() - began
		}()
		synctest.Wait()
		require.EqualValues(t, 2, reading.Load())
		c.pass(time.Hour)
		close(hold)
		assert.Equal(t, time.Hour, <-took)
	})
}

// Readers, waiters, a mover and faults at once: every sleeper wakes, in its own
// time, and no monotonic reading goes back.
func TestConcurrency(t *testing.T) {
	const sleepers, sleeps = 8, 200
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v := clocktest.NewVirtual(noon)
	var slept, readers sync.WaitGroup
	for i := range sleepers {
		slept.Go(func() {
			for j := range sleeps {
				d := time.Duration(1 + (i*j)%7)
				began := v.Passed()
				v.Sleep(d)
				assert.GreaterOrEqual(t, v.Passed(), began+d)
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			var last time.Duration
			for {
				select {
				case <-done:
					return
				default:
				}
				v.Now()
				v.Wall()
				now := v.Elapsed()
				if !assert.GreaterOrEqual(t, now, last) {
					return
				}
				last = now
				v.Waiting()
			}
		})
	}
	readers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			v.Step(time.Duration(i%3 - 1))
			v.Slew(float64(i%3), 10)
			v.Freeze(time.Duration(i % 5))
			v.Coarse(time.Duration(i % 4))
			v.Suspend(1)
			v.LeapSecond()
			v.OnRead(func() {})
		}
	})
	woken := 0
	for woken < sleepers*sleeps {
		require.NoError(t, v.BlockUntil(ctx, 1))
		if woken%2 == 0 {
			woken += v.Advance(3)
		} else if _, ok := v.WakeNext(); ok {
			woken++
		}
	}
	slept.Wait()
	close(done)
	readers.Wait()
	assert.Empty(t, v.Waiting())
}

func TestReadingsDoNotAllocate(t *testing.T) {
	onBoth(t, noon, func(t *testing.T, c subject) {
		c.Coarse(ms)
		c.Slew(0.5, time.Hour)
		c.OnRead(func() {})
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.Now()
			c.Wall()
			c.Elapsed()
			c.Passed()
		}))
	})
}

var (
	sinkTime     time.Time
	sinkDuration time.Duration
)

func BenchmarkReading(b *testing.B) {
	for _, clock := range []struct {
		name string
		c    faulty
	}{{"Virtual", clocktest.NewVirtual(noon)}, {"Mock", clocktest.NewMock(noon)}} {
		clock.c.Coarse(ms)
		b.Run(clock.name+"/Now", func(b *testing.B) {
			for b.Loop() {
				sinkTime = clock.c.Now()
			}
		})
		b.Run(clock.name+"/Elapsed", func(b *testing.B) {
			for b.Loop() {
				sinkDuration = clock.c.Elapsed()
			}
		})
	}
}

// BenchmarkAdvance is a move by one step with a slew and a coarse clock, as a long
// run makes between two IDs.
func BenchmarkAdvance(b *testing.B) {
	v := clocktest.NewVirtual(noon)
	v.Coarse(ms)
	v.Slew(0.5, forever)
	for b.Loop() {
		v.Advance(1)
	}
}
