package fleettest

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"
)

// Machine has a clock that wanders, and a process, or none at the moment.
type Machine struct {
	ID int
	P  *Process // the last to be started

	f *Fleet

	// The clock: both readings go on from a base, at a rate. The elapsed time never
	// goes back.
	since                 int64 // true time of the bases
	wallBase, elapsedBase int64
	wallRate, elapsedRate int64 // of rateOne

	cut     int64 // true time until which the store cannot be reached
	waiting bool  // a process is to be started later
	started int
}

const rateOne = 1024

func (m *Machine) elapsed() int64 { return m.elapsedBase + (m.f.Now-m.since)*m.elapsedRate/rateOne }

// Wall is the reading of the machine's wall clock, counted from Start.
func (m *Machine) Wall() int64 { return m.wallBase + (m.f.Now-m.since)*m.wallRate/rateOne }

// set changes the clock, and has those look at it who wait for it.
func (m *Machine) set(step, wallRate, elapsedRate int64) {
	m.wallBase, m.elapsedBase, m.since = m.Wall()+step, m.elapsed(), m.f.Now
	m.wallRate, m.elapsedRate = wallRate, elapsedRate
	m.f.Tracef("machine %d: clock is stepped by %s, and goes at %d, its elapsed time at %d of %d", m.ID, time.Duration(step), wallRate, elapsedRate, rateOne)
	for _, p := range m.f.Processes {
		if p.M == m && !p.Dead {
			for _, t := range p.threads {
				if t.asleep {
					t.Wake(0)
				}
			}
		}
	}
}

// Clock is a process's view of its machine's clock.
type Clock struct{ P *Process }

// Now reads the wall clock. Others may come before.
func (c Clock) Now() time.Time {
	if t := c.P.F.Current; t != nil && !t.dead {
		if t.Read != nil {
			t.Read()
		}
		t.Hiccup()
	}
	return Start.Add(time.Duration(c.P.M.Wall()))
}

// Elapsed reads the monotonic clock.
func (c Clock) Elapsed() time.Duration { return time.Duration(c.P.M.elapsed()) }

// After lets the time pass before it returns. The select that follows then has one
// case that is ready, so that the choice is not left to chance: the time that has
// passed, or else the reason for the end of the wait.
func (c Clock) After(d time.Duration) <-chan time.Time {
	t := c.P.F.Current
	if !t.waitIsOver() {
		t.Tracef("waits for %s", d)
		t.Sleep(d)
	}
	if t.waitIsOver() {
		return nil
	}
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over
}

// Boot adds a machine and draws its clock.
func (f *Fleet) Boot() {
	m := &Machine{f: f, ID: len(f.Machines), wallRate: rateOne, elapsedRate: rateOne}
	switch {
	case f.Skewed && f.Often(512):
		m.wallBase = f.Between(-4, 5) * int64(time.Hour)
	case f.Skewed:
		m.wallBase = f.Between(-3*f.Period, 3*f.Period)
	}
	if f.Slews {
		m.wallRate, m.elapsedRate = f.rate(), f.rate()
	}
	m.elapsedBase = f.Between(0, int64(time.Hour))
	f.Machines = append(f.Machines, m)
}

// rate draws how fast a clock goes: from half to twice.
func (f *Fleet) rate() int64 { return f.Between(rateOne/2, 2*rateOne) }

// StartLater starts a process when d has passed, unless one is to be started anyway; in the calm, when the
// first of both is due.
func (m *Machine) StartLater(d int64) {
	if m.waiting && !m.f.Calm {
		return
	}
	m.waiting = true
	m.f.At(d, func() {
		if m.waiting {
			m.waiting = false
			m.start()
		}
	})
}

func (m *Machine) start() {
	f := m.f
	if len(f.Processes) >= f.MostProcesses && !f.Calm || f.Calm && f.Alive() >= f.Room {
		return
	}
	m.started++
	p := &Process{F: f, M: m, Name: fmt.Sprintf("%d.%d", m.ID, m.started), Started: f.Now, Timeout: f.Between(f.Period/20, f.Period)}
	m.P = p
	f.Processes = append(f.Processes, p)
	p.program = f.Launch(p)
	p.Spawn("main", p.program.Main)
}

// stop stops all processes of a machine for d.
func (m *Machine) stop(d int64) {
	for _, p := range m.f.Processes {
		if p.M == m && !p.Dead {
			p.Stop(d)
		}
	}
}

// Process is a program on a machine.
type Process struct {
	F       *Fleet
	M       *Machine
	Name    string
	Started int64 // true time
	Timeout int64 // of a request to the store
	Dead    bool
	Closing bool // it closes in good order, or has closed

	program Program
	threads []*Thread
	stopped int64 // true time before which it does not run
}

// Program is what a process does.
type Program interface {
	Main(*Thread)       // is the first thread
	Step()              // is called after each step of a thread
	Ready() bool        // reports whether the next two may come
	Close(*Thread) bool // closes it in good order, and reports whether it has closed
	Restored(*Thread)   // its memory was restored, and it is told
}

// Shutdown closes p in good order, and starts another process after some time.
func (p *Process) Shutdown() {
	f := p.F
	if p.Closing || !p.program.Ready() {
		return
	}
	p.Closing = true
	f.Tally["shutdowns"]++
	p.Spawn("closer", func(t *Thread) {
		if p.Closing = p.program.Close(t); p.Closing {
			t.Pass(f.Between(0, f.Period)) // others may still try
			p.Replace(f.Between(0, f.Period))
		}
	})
}

// Replace takes p away, and starts another process on its machine when d has passed.
func (p *Process) Replace(d int64) {
	p.End()
	if !p.F.Ending {
		p.M.StartLater(d)
	}
}

// Issue starts a thread that makes calls at the pace of the run, as [Load] says.
func (p *Process) Issue(name string, call func(t *Thread, round int) error) {
	f := p.F
	p.Spawn(name, func(t *Thread) {
		for round := 0; !f.Over; round++ {
			switch {
			case f.Calm:
				t.Pass(f.Between(1, f.Rest))
			case round > 0 && !f.Often(f.PBurst):
				t.Pass(f.Between(1, f.Think))
			}
			if f.Issued > f.Most && !f.Calm {
				t.Pass(f.Period)
			}
			if call(t, round) != nil {
				t.Pass(f.Between(f.Period/64+1, f.Period/8+2)) // as a caller who tries again does
			}
		}
	})
}

// Stop keeps all threads of p from running for d.
func (p *Process) Stop(d int64) {
	p.stopped = max(p.stopped, p.F.Now+d)
	p.F.Tracef("%s: stopped until %s", p.Name, time.Duration(p.stopped))
}

// Crash ends a process wherever it is. Its requests may still arrive.
func (p *Process) Crash(why string) {
	if p.Dead {
		return
	}
	p.F.Tally["crashes"]++
	p.F.Tracef("%s: crashes, %s", p.Name, why)
	p.End()
	if !p.F.Calm {
		p.M.StartLater([...]int64{0, p.F.Between(0, p.F.Period/4), p.F.Between(0, 4*p.F.Period)}[p.F.Rng.IntN(3)])
	}
}

// End takes a process away.
func (p *Process) End() {
	p.Dead = true
	p.F.At(0, p.unwind) // not by a thread of its own
}

func (p *Process) unwind() {
	p.Dead = true
	for _, t := range p.threads {
		if !t.ended {
			t.stop()
			t.ended = true
		}
	}
}

// Alive is how many processes there are.
func (f *Fleet) Alive() (n int) {
	for _, p := range f.Processes {
		if !p.Dead {
			n++
		}
	}
	return n
}

// Log is the log of a process: it is in the trace, if there is one.
func (p *Process) Log() *slog.Logger {
	if p.F.Trace == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(p, nil))
}

// Write is that of the log, line by line.
func (p *Process) Write(line []byte) (int, error) {
	p.F.Tracef("%s: %s", p.Name, bytes.TrimSpace(line))
	return len(line), nil
}
