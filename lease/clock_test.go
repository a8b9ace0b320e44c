package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// errorClock is a machine whose kernel says how far its wall clock may be off.
type errorClock struct {
	*clocktest.Virtual
	most time.Duration
}

func (c errorClock) WallError() (time.Duration, bool) { return c.most, c.most >= 0 }

// A keeper says once how far the wall clock may be off at its start, and each growth of the suspended time that is no suspend.
func TestClockIsHeard(t *testing.T) {
	for most, lines := range map[time.Duration]int{16 * time.Second: 1, 3 * time.Second: 0, -time.Second: 0} {
		r := newRig(t)
		clock := monoclock.New(monoclock.WithSource(errorClock{r.clock, most}))
		k := r.claim(nil, lease.WithClock(clock))
		require.Equal(t, lines, r.log.count("and the times of IDs with it, by the kernel's word\" \"off by up to\"=16s"), most)
		require.Equal(t, most, k.Stats().WallError)
		r.clock.Suspend(time.Hour)
		r.keep(k, time.Minute, func() { clock.Now() })
		require.Zero(t, r.log.count("level=WARN"))
		for range 2 {
			r.clock.Suspend(2 * 366 * 24 * time.Hour)
			r.keep(k, time.Minute, func() { clock.Now() })
		}
		require.Equal(t, 2, r.log.count("moved from another machine; restart it\" by=\"2.00 years\""), r.log)
	}
}

// TestDrift: the log says once that the wall clock has left the clock of the IDs, and once that it is back.
func TestDrift(t *testing.T) {
	for step, says := range map[time.Duration]string{time.Hour: "set ahead", -time.Hour: "set back"} {
		w := newRig(t)
		k := must(lease.Claim(polled(t.Context()), w.cells, lease.WithClock(monoclock.New(monoclock.WithSource(w.clock))), w.log.option()))
		counts := func() []int { return []int{w.log.count(says), w.log.count("agree again"), w.log.count("WARN")} }
		for round := range 2 {
			w.clock.Step(time.Minute)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round, round, round}, counts(), "it is near")
			w.clock.Step(step - time.Minute)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round + 1, round, round + 1}, counts(), "%s", w.log)
			w.clock.Step(-step)
			w.keep(k, 3*period, func() {})
			require.Equal(t, []int{round + 1, round + 1, round + 1}, counts())
		}
	}
}
