package lease_test

import (
	"time"
)

// machine has a clock that wanders, and a process, or none at the moment.
type machine struct {
	f  *fleet
	id int
	p  *process // the last to be started

	// The clock: both readings go on from a base, at a rate. What elapsed never
	// goes back.
	since                 int64 // true time of the bases
	wallBase, elapsedBase int64
	wallRate, elapsedRate int64 // of rateOne

	cut     int64 // true time until which the store cannot be reached
	waiting int   // is not 0 if a process is to be started later
	started int
}

const rateOne = 1024

func (m *machine) wall() int64    { return m.wallBase + (m.f.now-m.since)*m.wallRate/rateOne }
func (m *machine) elapsed() int64 { return m.elapsedBase + (m.f.now-m.since)*m.elapsedRate/rateOne }

// set changes the clock, and has those look at it who wait for it.
func (m *machine) set(step, wallRate, elapsedRate int64) {
	m.wallBase, m.elapsedBase, m.since = m.wall()+step, m.elapsed(), m.f.now
	m.wallRate, m.elapsedRate = wallRate, elapsedRate
	if m.f.trace != nil {
		m.f.tracef("machine %d: clock is stepped by %s, and goes at %.2f, its elapsed time at %.2f", m.id,
			time.Duration(step), float64(wallRate)/rateOne, float64(elapsedRate)/rateOne)
	}
	for _, p := range m.f.all {
		if p.m == m && !p.dead {
			for _, t := range p.threads {
				if t.asleep {
					m.f.wake(t, 0)
				}
			}
		}
	}
}

// virtualClock is a process's view of its machine's clock.
type virtualClock struct{ p *process }

func (c virtualClock) Now() time.Time {
	f := c.p.f
	if t := f.current; t != nil && !t.dead {
		if t.calling {
			t.changed, t.limit = c.p.k.Window().Changed(), c.p.limit // as the generator has it
		}
		t.hiccup()
		t.looked()
	}
	return fleetStart.Add(time.Duration(c.p.m.wall()))
}

func (c virtualClock) Elapsed() time.Duration { return time.Duration(c.p.m.elapsed()) }

// After lets the time pass before it returns. The select that follows then has one
// case that is ready, so that the choice is not left to chance: the time that has
// passed, or else the end of the context, of the generator, or of the wait for a
// grant.
func (c virtualClock) After(d time.Duration) <-chan time.Time {
	t := c.p.f.current
	t.cut = false
	if !t.waitIsOver() {
		if t.f.trace != nil {
			t.tracef("waits for %s", d)
		}
		t.sleep(d)
	}
	if t.waitIsOver() {
		return nil
	}
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over
}

// waitIsOver reports whether what t waits in would end by itself.
func (t *thread) waitIsOver() bool {
	return t.dead || t.ctx != nil && t.ctx.Err() != nil || t.calling && t.isChanged()
}

// isChanged reports whether the window has changed since the generator took its channel.
func (t *thread) isChanged() bool {
	select {
	case <-t.changed:
		return true
	default:
		return false
	}
}

// bootstrap draws a clock for a new machine.
func (f *fleet) bootstrap(id int) *machine {
	m := &machine{f: f, id: id, wallRate: rateOne, elapsedRate: rateOne}
	switch {
	case f.skewed && f.often(512):
		m.wallBase = f.between(-4, 5) * int64(time.Hour)
	case f.skewed:
		m.wallBase = f.between(-3*f.period, 3*f.period)
	}
	if f.slews {
		m.wallRate, m.elapsedRate = f.rate(), f.rate()
	}
	m.elapsedBase = f.between(0, int64(time.Hour))
	return m
}

// rate draws how fast a clock goes: from half to twice.
func (f *fleet) rate() int64 { return f.between(rateOne/2, 2*rateOne) }

// fault does something to a machine or to all of them.
func (f *fleet) fault() {
	m := f.machines[f.rng.IntN(len(f.machines))]
	kind := f.kinds[f.rng.IntN(len(f.kinds))]
	f.faults++
	w := f.period
	switch kind {
	case stepSmall:
		m.set(f.between(-w/4, w/4), m.wallRate, m.elapsedRate)
	case stepLarge:
		m.set(f.between(-5*w, 5*w), m.wallRate, m.elapsedRate)
	case stepHours:
		m.set(f.between(-5, 6)*int64(time.Hour)+f.between(-w, w), m.wallRate, m.elapsedRate)
	case slew:
		m.set(0, f.rate(), f.rate())
	case freeze:
		m.set(0, 0, m.elapsedRate)
		f.at(f.between(0, 4*w), func() { m.set(0, rateOne, m.elapsedRate) })
	case suspend: // nothing runs, and elapsed time stands still
		d := f.between(0, 4*w)
		m.set(0, m.wallRate, 0)
		m.stop(d)
		f.at(d, func() { m.set(0, m.wallRate, rateOne) })
	case partition:
		m.cut = f.now + f.between(0, 5*w)
		f.tracef("machine %d: cut off until %s", m.id, time.Duration(m.cut))
	case outage:
		f.away = f.now + f.between(0, 4*w)
		f.tracef("store: away until %s", time.Duration(f.away))
	case kill:
		if m.p != nil && !m.p.dead {
			m.p.crash("killed")
		}
	case pauseAll:
		m.stop(f.between(0, 5*w))
	case zombie: // it is thought dead, replaced, and wakes again
		if m.p != nil && !m.p.dead && len(f.all) < f.mostProcesses {
			m.p.stop(f.between(0, 6*w))
			f.zombies++
			m.startLater(f.between(0, w))
		}
	case shutdown:
		if m.p != nil && !m.p.dead {
			m.p.shutdown()
		}
	case restored:
		if m.p != nil && !m.p.dead {
			m.p.restore()
		}
	case rewind:
		f.store.rewind()
	}
}

// stop stops all processes of a machine for d.
func (m *machine) stop(d int64) {
	for _, p := range m.f.all {
		if p.m == m && !p.dead {
			p.stop(d)
		}
	}
}

// startLater starts a process when d has passed, unless one is to be started anyway.
func (m *machine) startLater(d int64) {
	if m.f.calm {
		m.waiting = 0 // not as late as it was to be
	}
	if m.waiting != 0 {
		return
	}
	m.f.threads++
	serial := m.f.threads
	m.waiting = serial
	m.f.at(d, func() {
		if m.waiting == serial {
			m.waiting = 0
			m.start()
		}
	})
}

// settle ends all faults. Clocks go on from where they are, which may be hours
// apart; only one that no ID could be issued by is set right.
func (f *fleet) settle() {
	f.calm, f.stale, f.away, f.latency = true, false, 0, f.period/64+2
	f.batch = min(f.batch, 4)
	f.calmSince = f.now
	f.tracef("--- the faults are over ---")
	for _, m := range f.machines {
		m.cut = 0
		step := int64(0)
		if now := fleetStart.Add(time.Duration(m.wall())); now.Before(f.layout.Epoch) || !now.Before(f.layout.End()) {
			step = -m.wall()
		}
		m.set(step, rateOne, rateOne)
	}
	for _, o := range f.store.late {
		f.at(f.between(0, f.period/20), o.arrive)
	}
	f.store.late = nil
	f.reduce()
	for _, m := range f.machines {
		if m.p == nil || m.p.dead {
			m.startLater(f.between(0, f.period/10))
		}
	}
	for _, p := range f.all {
		if !p.dead {
			p.stopped = 0
			for _, t := range p.threads {
				f.wake(t, f.between(0, f.period/20))
			}
		}
	}
}

// reduce kills processes until there is a node number for each of those left.
func (f *fleet) reduce() {
	for int64(f.alive()) > f.numbers() {
		p := f.all[f.rng.IntN(len(f.all))]
		if !p.dead {
			p.crash("one too many")
		}
	}
}

// alive is how many processes there are.
func (f *fleet) alive() (n int) {
	for _, p := range f.all {
		if !p.dead {
			n++
		}
	}
	return n
}
