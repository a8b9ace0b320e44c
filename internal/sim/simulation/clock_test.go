//go:build simulate

package simulation

import (
	"time"

	"github.com/tickflake/tickflake/monoclock"
)

// epoch is the layout's.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// disturb makes a caller that has n faults happen to the clock, and calls also between them.
func (r *run) disturb(n int, also func()) {
	some := func() time.Duration { return time.Duration(1+r.IntN(5_000)) * us }
	r.spawn("clock", func(*caller) {
		for range n {
			for range r.IntN(40) {
				r.Before()
			}
			also()
			switch fault := r.IntN(12); fault {
			case 0, 1, 2:
				r.clock.Step(-pick(r, some(), ms, 3*ms, 20*ms, time.Second, time.Hour))
				r.backs++
			case 3:
				r.clock.Step(pick(r, some(), 3*ms, time.Second))
			case 4:
				r.clock.Slew(pick(r, 0, 0.5, 1.5, 2), 5*some())
			case 5:
				r.clock.Freeze(pick(r, some(), 10*ms))
			case 6:
				r.clock.Coarse(pick(r, 0, ms, 5*ms, 15_600*us))
			case 7:
				r.clock.Suspend(pick(r, some(), time.Second))
			case 8:
				r.clock.LeapSecond()
			default:
				r.clock.Advance(pick(r, some(), ms, 50*ms))
			}
			r.note("a fault: the clock shows %s", r.clock.Now().Sub(epoch))
		}
	})
}

// jitter lets a little time pass in the course of a reading.
func (r *run) jitter(most time.Duration) {
	if r.current != nil && most > 0 && r.IntN(2) == 0 {
		r.clock.Advance(time.Duration(r.Int64N(int64(most))))
	}
}

// source is the source of a monoclock.Clock.
type source struct {
	*run
	most  time.Duration // of the jitter
	looks int           // at the wall
}

func (s *source) Wall() time.Time {
	s.Before()
	if s.looks++; time.Duration(s.looks-1) > s.clock.Elapsed()/time.Second+1 {
		s.failf("%d looks at the wall in %s: one a second at most", s.looks, s.clock.Elapsed())
	}
	return s.clock.Wall()
}

func (s *source) Elapsed() time.Duration {
	s.Before()
	elapsed := s.clock.Elapsed()
	s.jitter(s.most)
	return elapsed
}

func (s *source) BootTime() time.Duration {
	s.Before()
	boot := s.clock.BootTime()
	s.jitter(s.most)
	return boot
}

func (s *source) After(time.Duration) <-chan time.Time { return nil }

// readings has callers read a monoclock.Clock that counts suspends and catches up with its wall, which jumps
// ahead: no reading goes back, and none runs ahead of the wall.
func readings(r *run) func() {
	const threshold, limit = 10 * ms, time.Hour
	clock := monoclock.New(monoclock.WithResync(threshold, limit), monoclock.WithSource(&source{run: r, most: pick(r, 0, 20*us, 3*ms)}))
	var latest time.Time
	for range 2 + r.IntN(3) {
		r.spawn("reader", func(*caller) {
			for range 4 + r.IntN(8) {
				before := latest
				now := clock.Now()
				r.note("reads %s", now.Sub(epoch))
				if now.Before(before) || now.After(r.clock.Wall()) {
					r.failf("a reading of %s, after one of %s had returned, and the wall shows %s", now.Sub(epoch), before.Sub(epoch), r.clock.Wall().Sub(epoch))
				}
				if now.After(latest) {
					latest = now
				}
				r.progress = r.steps
			}
		})
	}
	r.spawn("clock", func(*caller) {
		for range 6 {
			for range r.IntN(12) {
				r.Before()
			}
			switch r.IntN(3) {
			case 0:
				r.clock.Step(pick(r, 5*ms, 50*ms, 10*time.Second, 2*time.Hour))
			case 1:
				r.clock.Suspend(pick(r, 5*ms, 2*time.Second))
			default:
				r.clock.Advance(pick(r, time.Second, 1100*ms))
			}
		}
	})
	return func() {
		r.clock.Advance(time.Second)
		before := r.clock.Wall().Sub(clock.Now())
		if clock.Now(); before > threshold && before <= limit && clock.Drift() != 0 {
			r.failf("a drift of %s was not caught up: %s is left", before, clock.Drift())
		}
	}
}
