//go:build simulate

package simulation

import (
	"time"

	"github.com/tickflake/tickflake/monoclock"
)

// epoch is the layout's.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// reader is the clock that the generator reads. A reading may let time and other
// callers pass.
type reader interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
	Elapsed() time.Duration
}

func (s *sim) newReader() reader {
	var opts []monoclock.Option
	switch s.Clock {
	case Raw:
		return rawReader{s}
	case Resync:
		opts = []monoclock.Option{monoclock.WithResync(s.Threshold, s.Limit)}
	}
	mono := monoclock.New(append(opts, monoclock.WithSource(source{s}))...)
	r := &monoReader{Clock: mono, sim: s}
	for _, op := range s.Ops {
		r.behind = r.behind || op.Kind == Step && op.D < 0 || op.Kind == Slew || op.Kind == Coarse || op.Kind == Leap
	}
	return r
}

// rawReader reads the wall.
type rawReader struct{ sim *sim }

func (r rawReader) Now() time.Time {
	r.sim.Before()
	now := r.sim.clock.Now()
	r.sim.read(now)
	r.sim.jitter()
	return now
}

func (r rawReader) After(d time.Duration) <-chan time.Time { return r.sim.after(d) }

func (r rawReader) Elapsed() time.Duration { return r.sim.clock.Passed() }

// monoReader reads a monoclock.Clock, in which each reading has several steps.
type monoReader struct {
	*monoclock.Clock
	sim *sim

	lookups int       // at the wall
	latest  time.Time // of the readings that have returned
	behind  bool      // a fault may leave the wall behind the Clock
}

func (r *monoReader) Now() time.Time {
	before := r.latest
	now := r.Clock.Now()
	if now.Before(before) {
		r.sim.fail("reading goes back", "%s, and %s before this reading began", since(now), since(before))
	}
	if wall := r.sim.clock.Wall(); r.sim.Clock == Resync && !r.behind && now.After(wall) {
		r.sim.fail("reading ahead", "%s, but the wall, which was never set back, shows %s", since(now), since(wall))
	}
	if now.After(r.latest) {
		r.latest = now
	}
	r.sim.read(now)
	return now
}

func (r *monoReader) After(d time.Duration) <-chan time.Time { return r.sim.after(d) }

func (r *monoReader) Elapsed() time.Duration { return r.sim.clock.Passed() }

// source is the source of a monoclock.Clock.
type source struct{ sim *sim }

func (s source) Wall() time.Time {
	s.sim.Before()
	wall := s.sim.clock.Wall()
	if r, ok := s.sim.reader.(*monoReader); ok && s.sim.current != nil {
		r.lookups++
		if most := int(s.sim.clock.Elapsed() / time.Second); r.lookups > most {
			s.sim.fail("resync", "%d looks at the wall in %s: want one per second at most", r.lookups, s.sim.clock.Elapsed())
		}
	}
	s.sim.sawSource("wall", wall.Sub(epoch))
	return wall
}

func (s source) Elapsed() time.Duration {
	s.sim.Before()
	elapsed := s.sim.clock.Elapsed()
	s.sim.sawSource("elapsed", elapsed)
	s.sim.jitter()
	return elapsed
}

func (s source) After(time.Duration) <-chan time.Time { return nil } // monoReader has its own

// after waits for the caller that runs.
func (s *sim) after(d time.Duration) <-chan time.Time {
	if s.current != nil {
		return s.current.sleep(d)
	}
	s.fail("not served", "a call at the end waits for %s, with no fault and nothing ahead", d)
	over := make(chan time.Time)
	close(over)
	return over
}

func (s *sim) sawSource(what string, reading time.Duration) {
	if s.current == nil {
		return
	}
	s.note(uint64(reading))
	if s.trace() {
		s.tracef("%s: reads %s %s", s.current, what, reading)
	}
}

// read takes note of a caller's reading of its clock.
func (s *sim) read(now time.Time) {
	c := s.current
	if c == nil || c.dead || c == s.keeper {
		return
	}
	reading := int64(now.Sub(epoch))
	s.note(uint64(reading))
	c.call.looks = append(c.call.looks, look{reading: reading, free: c.call.free, begin: c.call.begin, limit: c.limit, limited: c.call.limited, span: c.call.span, waited: c.call.waited - c.call.ungranted})
	c.call.asked = false
	c.noteLead(reading)
	if s.trace() {
		s.tracef("%s: reads clock %s", c, since(now))
	}
}

// jitter lets a little time pass in the course of a reading.
func (s *sim) jitter() {
	if s.current == nil || s.Jitter <= 0 || s.rng.Uint64()&1 == 0 {
		return
	}
	s.pass(time.Duration(s.rng.Int64N(int64(s.Jitter))))
}

// pass advances true time.
func (s *sim) pass(d time.Duration) { s.clock.Advance(d) }

// since shows an instant by its distance from the epoch.
func since(t time.Time) time.Duration { return t.Sub(epoch) }
