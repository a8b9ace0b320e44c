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
