package generatortest

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// machine runs a script.
type machine[ID cmp.Ordered] struct {
	judge  judge[ID]
	world  *world
	script Script

	proc      Process[ID]
	line      *line[ID]
	stream    func() (ID, error) // of proc, once it was asked for one
	takeovers int
	starts    int // of processes on the state of another

	mu    sync.Mutex // of the judge, the line and all below
	jumps int64      // there had been when several callers began
	lost  bool       // a call ended its goroutine, and may hold a lock
	over  bool       // there is nothing more to do
}

func (m *machine[ID]) run() {
	whole := false
	defer m.judge.end()
	defer func() { // even if a call ends this goroutine
		switch {
		case m.world.spun.Load():
			m.judge.result.spun = true
			m.judge.violate(Stall, "a call read the clock %d times and did not end: it spins, or waits in steps too small for so long a time", patience)
		case !whole || m.lost:
			m.judge.violate(WrongError, "a call did not return: it ended its goroutine")
		}
	}()
	if m.start() {
		if m.proc.Restart == nil && m.script.has(Restart, Crash, Takeover) {
			m.judge.result.Skipped = noRestart
			if m.proc.Close != nil {
				_ = m.proc.Close() // not judged, since it does not apply
			}
		} else {
			m.steps()
		}
	}
	whole = true
}

const noRestart = "it keeps no state across a restart (Process.Restart)"

// steps carries out the steps, up to one that fails, and closes the process.
func (m *machine[ID]) steps() {
	for i, step := range m.script.Steps {
		m.judge.step = i + 1
		if m.do(step); m.over {
			break
		}
	}
	if !m.over {
		m.judge.step = AfterScript
		m.settle()
	}
	if !m.lost {
		m.close()
	}
}

// fail ends the script, since there is no process or stream.
func (m *machine[ID]) fail(format string, args ...any) {
	m.over = true
	m.judge.violate(NoStart, format, args...)
}

// start starts the first process, and reports whether to go on.
func (m *machine[ID]) start() bool {
	s := m.judge.subject
	if s.New == nil {
		m.fail("the Subject has no New")
		return false
	}
	var err error
	m.proc, err = s.New(m.world.clock)
	now := m.world.clock.Wall()
	// A script that begins at another time than all others does so to see that.
	excused := m.script.Begin != "" && (now.Before(s.Epoch) || !s.End.IsZero() && !now.Before(s.End))
	switch {
	case err != nil && !excused:
		m.fail("at %s: %v", show(now), err)
	case err == nil && m.proc.Next == nil:
		m.fail("the process has no Next")
	case err != nil:
		m.judge.result.Note = "it refused to start, as it may: " + err.Error()
	default:
		m.line.start = m.now(&m.proc)
		return true
	}
	return false
}

// close closes the process, once.
func (m *machine[ID]) close() {
	if end := m.proc.Close; end != nil {
		m.proc.Close = nil
		m.world.allow(1)
		if err := end(); err != nil {
			m.fail("close: %v", err)
		}
	}
}

// now is the time that a process goes by.
func (m *machine[ID]) now(p *Process[ID]) time.Time {
	if p.Now != nil {
		return m.world.quietly(p.Now)
	}
	return m.world.quietly(m.world.clock.Wall)
}

// do carries out a step.
func (m *machine[ID]) do(s Step) {
	w := m.world
	switch s.Do {
	case IDs:
		m.ids(s.Count, s.Time)
	case Batch:
		m.batch(s.Count)
	case Stream:
		m.streamed(s.Count)
	case Pass:
		w.clock.Advance(s.Time)
	case StepWall:
		if s.Count == 0 {
			w.clock.Step(s.Time)
			return
		}
		w.at(s.Count, func() {
			w.jumped.Add(1) // before the wall shows it, so that no call that saw it ends with the count it began with
			w.clock.Step(s.Time)
		})
	case Slew:
		w.clock.Slew(s.Rate, s.Time)
	case Freeze:
		w.clock.Freeze(s.Time)
	case Coarse:
		w.clock.Coarse(max(s.Time, resolution))
	case Suspend:
		w.clock.Suspend(s.Time)
	case Leap:
		w.clock.LeapSecond()
	case Restart, Crash:
		if s.Do == Restart {
			m.close()
		} else if s.Count > 0 {
			m.kill(s.Count)
		}
		if !m.over && m.another() {
			m.line.stream, m.line.unknown, m.line.process = 0, true, m.starts
		}
	case Takeover:
		m.takeover(s.Time)
	}
}

// another goes on with another process on the state of this one, and reports whether there is one.
func (m *machine[ID]) another() bool {
	m.world.allow(1)
	m.starts++
	m.judge.process = m.starts
	next, err := m.proc.Restart()
	if err == nil && next.Next == nil {
		err = fmt.Errorf("the process has no Next")
	}
	if err != nil {
		m.fail("restart at %s: %v", show(m.world.clock.Wall()), err)
		return false
	}
	if next.Restart == nil {
		next.Restart = m.proc.Restart
	}
	m.proc, m.stream = next, nil
	return true
}

// rounds is into how many parts the IDs of several callers are divided when they are
// spread over a time.
const rounds = 100

// ids makes n calls, spread over d.
func (m *machine[ID]) ids(n int, d time.Duration) {
	parts := n
	if m.script.Callers > 1 {
		parts = 1
		if d > 0 {
			parts = min(n, rounds)
		}
	}
	for i := 0; i < parts && !m.over; i++ {
		if m.script.Callers <= 1 {
			m.issue(&m.proc, m.line, call{}, 1)
		} else {
			m.together(n*(i+1)/parts - n*i/parts)
		}
		m.world.clock.Advance(part(d, i+1, parts) - part(d, i, parts))
	}
}

// part is i of n parts of d. It does not overflow, however long d is.
func part(d time.Duration, i, n int) time.Duration {
	return d/time.Duration(n)*time.Duration(i) + d%time.Duration(n)*time.Duration(i)/time.Duration(n)
}

// issue makes one call to a process for n IDs. Several callers may do so at once.
func (m *machine[ID]) issue(p *Process[ID], l *line[ID], c call, n int) {
	m.mu.Lock()
	before, jumps, over := *l, m.jumps, m.over
	if !c.shared {
		m.world.allow(1 + n/4096) // some thousand readings for each ID are plenty, beside one long wait
		jumps = m.world.jumped.Load()
	}
	m.mu.Unlock()
	if over {
		return
	}
	c.began = m.now(p)
	passed := m.world.clock.Passed()
	ids, filled, err := m.ask(p, c, n)
	c.ended = m.now(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	if c.shared {
		// Readings are counted for all callers together: while calls of others
		// return, a call that spins continues. The others soon run out of calls.
		m.world.allow(1)
	} else {
		c.stall = m.world.clock.Passed() - passed
	}
	// Of several callers, one that began after a jump may meet an ID of a call that did not, and
	// has not returned yet.
	c.jumped = m.world.jumped.Load() > jumps
	m.judge.returned(l, before, c, ids, filled, err)
}

// ask makes a call.
func (m *machine[ID]) ask(p *Process[ID], c call, n int) (ids []ID, filled int, err error) {
	if c.several {
		ids = make([]ID, n)
		filled, err = p.NextN(ids)
		return ids, filled, err
	}
	next := p.Next
	if c.stream {
		next = m.stream
	}
	id, err := next()
	ids = one(id, err)
	return ids, len(ids), err
}

// streamed makes n calls to the process's stream.
func (m *machine[ID]) streamed(n int) {
	if m.proc.Stream == nil {
		m.ids(n, 0)
		return
	}
	if m.stream == nil {
		m.world.allow(1)
		if m.stream = m.proc.Stream(); m.stream == nil {
			m.fail("Stream returned nil")
		}
	}
	for i := 0; i < n && !m.over; i++ {
		m.issue(&m.proc, m.line, call{stream: true}, 1)
	}
}

// batch makes one call for n IDs.
func (m *machine[ID]) batch(n int) {
	if m.proc.NextN == nil {
		m.ids(n, 0)
		return
	}
	m.issue(&m.proc, m.line, call{several: true}, n)
}

// settle ends the faults, lets the clock pass the last ID, and checks that calls are
// served.
func (m *machine[ID]) settle() {
	s := m.judge.subject
	m.world.calm()
	m.issue(&m.proc, m.line, call{}, 1) // by a process that has just started, perhaps
	wait := time.Second
	if s.Time == nil || m.line.unknown {
		// Each start may have reserved time and left it unused, as a lease does.
		wait += m.script.reach() + time.Minute + time.Duration(m.starts)*time.Hour
	} else {
		now := m.now(&m.proc)
		wait += min(max(0, m.line.top.Sub(now), m.line.start.Sub(now)), maxTime)
	}
	m.world.clock.Advance(wait)
	for range 3 {
		now := m.now(&m.proc)
		if now.Before(s.Epoch) || !s.End.IsZero() && !now.Add(s.Tick).Before(s.End) {
			return // nobody would be served
		}
		errors, passed := m.judge.result.Errors, m.world.clock.Passed()
		m.issue(&m.proc, m.line, call{}, 1)
		if m.judge.result.Errors > errors {
			m.judge.violate(NoRecovery, "all faults had been over for %s, and the call failed", wait)
		} else if stall := m.world.clock.Passed() - passed; stall > 0 {
			m.judge.violate(NoRecovery, "all faults had been over for %s, and the call took %s", wait, stall)
		}
		m.world.clock.Advance(time.Second)
	}
}
