package lease_test

import (
	"fmt"
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

// TestWitness: a claim that meets a number whose limit lies far ahead of its clock says so once, unless it lies there
// on purpose, and a strict one ends.
func TestWitness(t *testing.T) {
	const far = 7 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		before string
		by     time.Duration // that our clock is behind what was before
		ours   string        // options
		warns  string        // a text of the line, or "" for none
	}{
		"a release":         {"claim a bits:4; close a", far, "", "this clock is behind, or"},
		"two crashes":       {"claim a bits:4; claim b bits:4", far, "", "this clock is behind, or"},
		"a longer grant":    {"claim a bits:4 window:1h", time.Hour, "", ""},
		"near":              {"claim a bits:4; close a", time.Minute + 2*period - time.Second, "", ""},
		"not so near":       {"claim a bits:4; close a", time.Minute + 2*period + time.Second, "", "this clock is behind, or"},
		"reserved":          {fmt.Sprintf("reserve 0 9 %s bits:4", far+time.Hour), far, "", ""},
		"the fleet's floor": {fmt.Sprintf("found 0 15 bits:4 floor:%s; claim a bits:4; close a", far), far, "", ""},
		"our number":        {"claim a pin:7 bits:4; close a", far, "pin:7", "the grant begins"},
		"beside ours":       {"claim a pin:6 bits:4; close a", far, "pin:7", ""}, // it reads its own cell alone
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.run(fmt.Sprintf("step %s; %s; step -%[1]s", test.by, test.before))
			r.log = &record{}
			strict := "claim s bits:4 strict " + test.ours
			if test.warns == "" {
				r.run(strict + "; close s; claim k bits:4 " + test.ours + "; keep k 5m; log 0 'is behind, or'")
				return
			}
			r.run(strict + " = skew 'this clock is behind, or an earlier one was ahead' 'without the strict check'")
			r.log = &record{}
			r.run("claim k bits:4 " + test.ours + "; keep k 5m; log 1 WARN; log 1 '" + test.warns + "'")
		})
	}
	newRig(t).run(fmt.Sprintf("claim k bits:4 strict; step %s; claim a bits:4; step -%[1]s; restored k; log 1 'is behind, or'", far)) // it has begun
}
