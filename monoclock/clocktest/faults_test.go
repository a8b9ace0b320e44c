package clocktest_test

import (
	"math"
	"math/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

var (
	_ monoclock.Interface = (*clocktest.Virtual)(nil)
	_ monoclock.Source    = (*clocktest.Virtual)(nil)
	_ monoclock.Interface = (*clocktest.Mock)(nil)
	_ monoclock.Source    = (*clocktest.Mock)(nil)
	_ clock.Clock         = (*clocktest.Mock)(nil)
)

// subject is a clock, and how a test lets true time pass on it.
type subject struct {
	faulty
	pass func(time.Duration)
}

// faulty is what both clocks have.
type faulty interface {
	monoclock.Interface
	Wall() time.Time
	Elapsed() time.Duration
	Passed() time.Duration
	OnRead(func())
	Step(time.Duration)
	Slew(float64, time.Duration)
	Freeze(time.Duration)
	Coarse(time.Duration)
	Suspend(time.Duration)
	LeapSecond()
	Restart()
}

// onBoth runs test on both clocks, in a bubble, where the Mock's real sleeps take no time.
func onBoth(t *testing.T, start time.Time, test func(t *testing.T, c subject)) {
	synctest.Test(t, func(t *testing.T) {
		v, m := clocktest.NewVirtual(start), clocktest.NewMock(start)
		test(t, subject{v, func(d time.Duration) { v.Advance(d) }})
		test(t, subject{m, m.Add})
	})
}

const (
	ms      = time.Millisecond
	sec     = time.Second
	forever = time.Duration(math.MaxInt64)
)

// probe is what the clock shows when so much true time has passed since the
// faults: the wall since noon, and the monotonic reading.
type probe struct{ at, wall, mono time.Duration }

var faults = []struct {
	name string
	do   func(c subject)
	want []probe
}{
	{"none", func(subject) {}, []probe{{0, 0, 0}, {1, 1, 1}, {sec, sec, sec}}},

	{"step ahead", func(c subject) { c.Step(time.Hour) }, []probe{{0, time.Hour, 0}, {sec, time.Hour + sec, sec}}},
	{"step back", func(c subject) { c.Step(-time.Hour) }, []probe{{0, -time.Hour, 0}, {sec, -time.Hour + sec, sec}}},
	{"steps add up", func(c subject) { c.Step(3 * sec); c.Step(-5 * sec) }, []probe{{0, -2 * sec, 0}}},

	{"slew slow", func(c subject) { c.Slew(0.5, 2*sec) }, []probe{{sec, sec / 2, sec}, {2 * sec, sec, 2 * sec}, {3 * sec, 2 * sec, 3 * sec}}},
	{"slew fast", func(c subject) { c.Slew(2, 2*sec) }, []probe{{sec, 2 * sec, sec}, {2 * sec, 4 * sec, 2 * sec}, {3 * sec, 5 * sec, 3 * sec}}},
	{"slew as ntpd", func(c subject) { c.Slew(1.0005, time.Hour) }, []probe{{1, 1, 1}, {2000, 2001, 2000}, {time.Hour, time.Hour + 1800*ms, time.Hour}}},
	{"slew to the nearest nanosecond", func(c subject) { c.Slew(0.29, sec) }, []probe{{1, 0, 1}, {2, 1, 2}, {100, 29, 100}}},
	{"slew replaced", func(c subject) { c.Slew(2, time.Hour); c.pass(sec); c.Slew(0.5, 2*sec) }, []probe{{0, 2 * sec, sec}, {2 * sec, 3 * sec, 3 * sec}, {3 * sec, 4 * sec, 4 * sec}}},
	{"slew ended", func(c subject) { c.Slew(2, time.Hour); c.pass(sec); c.Slew(3, 0) }, []probe{{sec, 3 * sec, 2 * sec}}},
	{"slew ended by less than nothing", func(c subject) { c.Slew(2, time.Hour); c.pass(sec); c.Slew(3, -1) }, []probe{{sec, 3 * sec, 2 * sec}}},
	{"slew below zero", func(c subject) { c.Slew(-1, sec) }, []probe{{sec, 0, sec}, {2 * sec, sec, 2 * sec}}},
	{"slew down to minus infinity", func(c subject) { c.Slew(math.Inf(-1), sec) }, []probe{{sec, 0, sec}}},
	{"slew beyond bounds", func(c subject) { c.Slew(math.Inf(1), sec) }, []probe{{sec, 1000 * sec, sec}, {2 * sec, 1001 * sec, 2 * sec}}},
	{"slew at no number", func(c subject) { c.Slew(math.NaN(), sec) }, []probe{{sec, sec, sec}}},
	{"slew for ever", func(c subject) { c.pass(1); c.Slew(2, forever) }, []probe{{time.Hour, 2*time.Hour + 1, time.Hour + 1}}},

	{"freeze", func(c subject) { c.pass(sec); c.Freeze(sec) }, []probe{{0, sec, sec}, {sec - 1, sec, sec}, {sec, sec, sec}, {sec + 1, sec + 1, sec + 1}, {3 * sec, 3 * sec, 3 * sec}}},
	{"freeze replaced", func(c subject) { c.Freeze(time.Hour); c.Freeze(sec) }, []probe{{sec, 0, 0}, {2 * sec, sec, sec}}},
	{"thaw", func(c subject) { c.Freeze(time.Hour); c.pass(sec); c.Freeze(0) }, []probe{{0, 0, 0}, {sec, sec, sec}}},
	{"thaw by less than nothing", func(c subject) { c.Freeze(time.Hour); c.pass(sec); c.Freeze(-forever) }, []probe{{sec, sec, sec}}},
	{"freeze for ever", func(c subject) { c.pass(sec); c.Freeze(forever) }, []probe{{200 * 365 * 24 * time.Hour, sec, sec}}},

	{"coarse", func(c subject) { c.Coarse(10 * ms) }, []probe{{10*ms - 1, 0, 0}, {10 * ms, 10 * ms, 10 * ms}, {25 * ms, 20 * ms, 20 * ms}}},
	{"coarse wall counts from 1970", func(c subject) { c.Step(13 * ms); c.Coarse(10 * ms) }, []probe{{6 * ms, 13 * ms, 0}, {7 * ms, 20 * ms, 0}, {10 * ms, 20 * ms, 10 * ms}}},
	{"coarse sets nothing back", func(c subject) { c.pass(13 * ms); c.Coarse(10 * ms) }, []probe{{0, 13 * ms, 13 * ms}, {7*ms - 1, 13 * ms, 13 * ms}, {7 * ms, 20 * ms, 20 * ms}}},
	{"coarse loses nothing", func(c subject) { c.Coarse(10 * ms); c.pass(19 * ms); c.Coarse(0) }, []probe{{0, 19 * ms, 19 * ms}, {ms, 20 * ms, 20 * ms}}},
	{"coarse ended by less than nothing", func(c subject) { c.Coarse(10 * ms); c.Coarse(-10 * ms) }, []probe{{ms, ms, ms}}},
	{"coarse becomes finer", func(c subject) { c.Coarse(10 * ms); c.pass(19 * ms); c.Coarse(4 * ms) }, []probe{{0, 16 * ms, 16 * ms}, {ms, 20 * ms, 20 * ms}}},
	{"coarse for ever", func(c subject) { c.pass(sec); c.Coarse(forever) }, []probe{{time.Hour, sec, sec}}},

	{"suspend", func(c subject) { c.Suspend(time.Hour) }, []probe{{0, time.Hour, 0}, {sec, time.Hour + sec, sec}}},
	{"suspend for less than nothing", func(c subject) { c.Suspend(-time.Hour) }, []probe{{0, 0, 0}}},

	{"leap second", func(c subject) { c.LeapSecond() }, []probe{{sec - 1, sec - 1, sec - 1}, {sec, 0, sec}, {sec + 1, 1, sec + 1}, {2 * sec, sec, 2 * sec}, {5 * sec, 4 * sec, 5 * sec}}},
	{"leap second twice", func(c subject) { c.LeapSecond(); c.LeapSecond() }, []probe{{5 * sec, 4 * sec, 5 * sec}}},
	{"leap second after leap second", func(c subject) { c.LeapSecond(); c.pass(sec); c.LeapSecond() }, []probe{{sec, 0, 2 * sec}, {5 * sec, 4 * sec, 6 * sec}}},

	{"restart", func(c subject) { c.pass(sec); c.Restart() }, []probe{{0, sec, 0}, {sec, 2 * sec, sec}}},

	{"freeze within a slew", func(c subject) { c.Slew(2, 3*sec); c.Freeze(sec) }, []probe{{sec, 0, 0}, {2 * sec, 2 * sec, sec}, {3 * sec, 4 * sec, 2 * sec}, {5 * sec, 6 * sec, 4 * sec}}},
	{"freeze beyond a slew", func(c subject) { c.Slew(2, 3*sec); c.pass(sec); c.Freeze(4 * sec) }, []probe{{0, 2 * sec, sec}, {4 * sec, 2 * sec, sec}, {5 * sec, 3 * sec, 2 * sec}}},
	{"step while frozen", func(c subject) { c.Freeze(sec); c.Step(-time.Hour) }, []probe{{0, -time.Hour, 0}, {sec, -time.Hour, 0}, {2 * sec, sec - time.Hour, sec}}},
	{"step while slewed", func(c subject) { c.Slew(2, 2*sec); c.pass(sec); c.Step(-time.Hour) }, []probe{{sec, 4*sec - time.Hour, 2 * sec}, {2 * sec, 5*sec - time.Hour, 3 * sec}}},
	{"suspend while frozen", func(c subject) { c.Freeze(sec); c.Suspend(time.Hour) }, []probe{{0, time.Hour, 0}, {sec, time.Hour, 0}, {2 * sec, time.Hour + sec, sec}}},
	{"suspend while slewed", func(c subject) { c.Slew(2, sec); c.Suspend(time.Hour) }, []probe{{sec, time.Hour + 2*sec, sec}, {2 * sec, time.Hour + 3*sec, 2 * sec}}},
	{"leap second while slewed", func(c subject) { c.Slew(0.5, 4*sec); c.LeapSecond() }, []probe{{2*sec - 2, sec - 1, 2*sec - 2}, {2 * sec, 0, 2 * sec}, {4 * sec, sec, 4 * sec}}},
	{"leap second waits for a frozen clock", func(c subject) { c.LeapSecond(); c.Freeze(10 * sec) }, []probe{{10 * sec, 0, 0}, {11*sec - 1, sec - 1, sec - 1}, {11 * sec, 0, sec}}},
	{"leap second in a suspend", func(c subject) { c.LeapSecond(); c.Suspend(1500 * ms) }, []probe{{0, 500 * ms, 0}, {sec, 1500 * ms, sec}}},
	{"step over a leap second", func(c subject) { c.LeapSecond(); c.Step(1500 * ms) }, []probe{{0, 1500 * ms, 0}, {500*ms - 1, 2*sec - 1, 500*ms - 1}, {500 * ms, sec, 500 * ms}}},
	{"leap second read coarsely", func(c subject) { c.LeapSecond(); c.Coarse(400 * ms) }, []probe{{900 * ms, 800 * ms, 800 * ms}, {sec, 0, 800 * ms}, {1400 * ms, 400 * ms, 1200 * ms}}},
	{"step back under a held reading", func(c subject) { c.pass(13 * ms); c.Coarse(10 * ms); c.Step(-5 * ms) }, []probe{{0, 0, 13 * ms}, {2 * ms, 10 * ms, 13 * ms}, {7 * ms, 10 * ms, 20 * ms}}},
	{"step back under a multiple", func(c subject) { c.pass(13 * ms); c.Coarse(10 * ms); c.pass(8 * ms); c.Step(-5 * ms) }, []probe{{0, 10 * ms, 20 * ms}}},
	{"frozen and coarse", func(c subject) { c.Coarse(10 * ms); c.pass(19 * ms); c.Freeze(sec) }, []probe{{sec, 10 * ms, 10 * ms}, {sec + ms, 20 * ms, 20 * ms}}},
	{"restart of a coarse clock", func(c subject) { c.pass(13 * ms); c.Coarse(10 * ms); c.Restart() }, []probe{{0, 13 * ms, 0}, {9 * ms, 20 * ms, 0}, {10 * ms, 20 * ms, 10 * ms}}},
	{"restart of a frozen clock", func(c subject) { c.pass(sec); c.Freeze(sec); c.Restart() }, []probe{{sec, sec, 0}, {2 * sec, 2 * sec, sec}}},
}

// Every fault shows the same whether time passes in one move or in several.
func TestFaults(t *testing.T) {
	show := func(t *testing.T, c subject, p probe) {
		t.Helper()
		assert.Equal(t, p.wall, c.Wall().Sub(noon), "wall after %v", p.at)
		assert.Equal(t, p.wall, c.Now().Sub(noon), "now after %v", p.at)
		assert.Equal(t, p.mono, c.Elapsed(), "elapsed after %v", p.at)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for _, p := range f.want {
				onBoth(t, noon, func(t *testing.T, c subject) {
					f.do(c)
					c.pass(p.at)
					show(t, c, p)
				})
			}
			onBoth(t, noon, func(t *testing.T, c subject) {
				f.do(c)
				began := c.Passed()
				for _, p := range f.want {
					c.pass(p.at - (c.Passed() - began))
					show(t, c, p)
				}
			})
		})
	}
}

// A slew's roundings do not add up: 3 ns at a third of the speed are 1 ns, even
// one by one.
func TestSlewInSmallSteps(t *testing.T) {
	v := clocktest.NewVirtual(noon)
	v.Slew(1.0/3, sec)
	for range 3000 {
		v.Advance(1)
	}
	assert.Equal(t, noon.Add(1000), v.Wall())
}

// No fault delays or hastens a waiter, except that a restart forgets all waiters of a Virtual.
func TestFaultsLeaveWaitersAlone(t *testing.T) {
	for _, f := range faults {
		v := clocktest.NewVirtual(noon)
		over := v.After(time.Hour)
		f.do(subject{v, func(d time.Duration) { v.Advance(d) }})
		if strings.Contains(f.name, "restart") {
			assert.Empty(t, v.Waiting())
			continue
		}
		v.Advance(time.Hour - v.Passed() - 1)
		require.Empty(t, over, f.name)
		require.Equal(t, []time.Duration{1}, v.Waiting(), f.name)
		v.Advance(1)
		require.Len(t, over, 1, f.name)
	}
}

func TestReadingsAreBareAndUTC(t *testing.T) {
	start := time.Now().In(time.FixedZone("elsewhere", 3600))
	onBoth(t, start, func(t *testing.T, c subject) {
		assert.True(t, c.Now() == start.Round(0).UTC(), "%v", c.Now())
		assert.True(t, c.Wall() == start.Round(0).UTC(), "%v", c.Wall())
	})
}

func TestSaturation(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64).UTC(), time.Unix(0, math.MaxInt64).UTC()
	for start, want := range map[time.Time]time.Time{
		{}: first,
		time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC):          first,
		time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC):          last,
		time.Date(1969, 12, 31, 0, 0, 0, 0, noon.Location()): time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		onBoth(t, start, func(t *testing.T, c subject) { assert.Equal(t, want, c.Wall()) })
	}
	onBoth(t, noon, func(t *testing.T, c subject) {
		c.Step(forever)
		c.Step(forever)
		assert.Equal(t, last, c.Wall())
		c.Suspend(forever)
		assert.Equal(t, last, c.Wall())
		c.Coarse(forever)
		assert.Equal(t, last, c.Wall())
		c.Coarse(0)
		for range 3 {
			c.Step(-forever)
		}
		assert.Equal(t, first, c.Wall())
		c.Coarse(time.Hour)
		assert.Equal(t, first, c.Wall())
		c.Coarse(0)

		c.pass(sec)
		c.pass(forever)
		assert.Equal(t, forever, c.Passed(), "true time ends")
		assert.Equal(t, forever, c.Elapsed())
		assert.Equal(t, first.Add(forever), c.Wall())
		c.Slew(1000, forever)
		c.pass(forever)
		assert.Equal(t, first.Add(forever), c.Wall(), "nothing passes any more")
	})
	onBoth(t, noon, func(t *testing.T, c subject) {
		c.Slew(1000, forever)
		c.pass(forever)
		assert.Equal(t, last, c.Wall())
		assert.Equal(t, forever, c.Elapsed())
	})
}

// With any values, in any order, nothing panics, true time and the
// monotonic reading do not go back, and the readings agree.
func TestNonsense(t *testing.T) {
	durations := []time.Duration{math.MinInt64, -time.Hour, -1, 0, 1, time.Hour, forever}
	rates := []float64{math.Inf(-1), -1, 0, 1e-300, 1, 1e300, math.Inf(1), math.NaN()}
	onBoth(t, noon, func(t *testing.T, c subject) {
		faults := []struct {
			name string
			do   func(d time.Duration, rate float64)
		}{
			{"step", func(d time.Duration, _ float64) { c.Step(d) }},
			{"slew", func(d time.Duration, rate float64) { c.Slew(rate, d) }},
			{"freeze", func(d time.Duration, _ float64) { c.Freeze(d) }},
			{"coarse", func(d time.Duration, _ float64) { c.Coarse(d) }},
			{"suspend", func(d time.Duration, _ float64) { c.Suspend(d) }},
			{"leap", func(time.Duration, float64) { c.LeapSecond() }},
			{"pass", func(d time.Duration, _ float64) { c.pass(d) }},
		}
		random := rand.New(rand.NewSource(1))
		var elapsed, passed time.Duration
		for range 2000 {
			f := faults[random.Intn(len(faults))]
			d, rate := durations[random.Intn(len(durations))], rates[random.Intn(len(rates))]
			require.NotPanics(t, func() { f.do(d, rate) }, "%s %d %v", f.name, d, rate)
			require.GreaterOrEqual(t, c.Elapsed(), elapsed, "%s %d %v", f.name, d, rate)
			require.GreaterOrEqual(t, c.Passed(), passed, "%s %d %v", f.name, d, rate)
			require.Equal(t, c.Now(), c.Wall())
			elapsed, passed = c.Elapsed(), c.Passed()
		}
	})
}
