package generatortest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// machine runs a script.
type machine[ID cmp.Ordered] struct {
	judge   judge[ID]
	world   *world
	callers int

	proc      Process[ID]
	line      *line[ID]
	streams   map[int]func() (ID, error) // of proc, by their numbers
	takeovers int
	starts    int  // of processes on the state of another
	begins    bool // the script says when it begins

	mu    sync.Mutex // of the judge, the line and all below
	jumps int64      // there had been when several callers began
	lost  bool       // a call ended its goroutine
	over  bool       // nobody listens to several callers any longer
}

func (m *machine[ID]) run(script Script) {
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
		if m.proc.Restart == nil && script.has(Restart, Crash, Takeover) {
			m.judge.result.Skipped = noRestart
			if m.proc.Close != nil {
				_ = m.proc.Close() // not judged, since it does not apply
			}
		} else {
			if m.steps(script.Steps) {
				m.judge.step = AfterScript
				m.settle(script)
			}
			if !m.lost { // one that was ended in a call may hold a lock
				m.close()
			}
		}
	}
	whole = true
}

const noRestart = "it keeps no state across a restart (Process.Restart)"

// steps carries out the steps, and reports whether it came to their end.
func (m *machine[ID]) steps(steps []Step) bool {
	for i, step := range steps {
		m.judge.step = i + 1
		if step.Do == Takeover { // its calls come after its begin
			m.judge.did(step)
		}
		if !m.do(step) {
			return false
		}
		if !slices.Contains([]Action{IDs, Batch, Stream, Takeover}, step.Do) {
			m.judge.did(step)
		}
	}
	return true
}

// start starts the first process, and reports whether to go on.
func (m *machine[ID]) start() bool {
	s := m.judge.subject
	if s.New == nil {
		m.judge.violate(NoStart, "the Subject has no New")
		return false
	}
	var err error
	m.proc, err = s.New(m.world.clock)
	now := m.world.clock.Wall()
	// A script that begins at another time than all others does so to see that.
	excused := m.begins && (now.Before(s.Epoch) || !s.End.IsZero() && !now.Before(s.End))
	switch {
	case err != nil && !excused:
		m.judge.violate(NoStart, "at %s: %v", show(now), err)
	case err == nil && m.proc.Next == nil:
		m.judge.violate(NoStart, "the process has no Next")
	case err != nil:
		m.judge.result.Note = "it refused to start, as it may: " + err.Error()
	default:
		m.line.start = m.now(&m.proc)
		return true
	}
	return false
}

// close closes the process, once, and reports whether that went well.
func (m *machine[ID]) close() bool {
	if end := m.proc.Close; end != nil {
		m.proc.Close = nil
		m.world.allow(1)
		if err := end(); err != nil {
			m.judge.violate(NoStart, "close: %v", err)
			return false
		}
	}
	return true
}

// now is the time that a process goes by.
func (m *machine[ID]) now(p *Process[ID]) time.Time {
	if p.Now != nil {
		return m.world.quietly(p.Now)
	}
	return m.world.quietly(m.world.clock.Wall)
}

// do carries out a step, and reports whether to go on.
func (m *machine[ID]) do(s Step) bool {
	switch s.Do {
	case IDs:
		return m.ids(s.Count, s.Time)
	case Batch:
		return m.batch(s.Count)
	case Stream:
		return m.streamed(s.Count)
	case Pass:
		m.world.clock.Advance(s.Time)
	case Restart, Crash:
		if s.Do == Restart && !m.close() || s.Count > 0 && !m.killed(s.Count) {
			return false
		}
		next, ok := m.another()
		if ok {
			m.proc, m.streams, m.line.streams, m.line.unknown, m.line.process = next, nil, nil, true, m.starts
		}
		return ok
	case Takeover:
		return m.takeover(s.Time)
	default:
		m.world.fault(s)
	}
	return true
}

// another starts another process on the state of this one.
func (m *machine[ID]) another() (Process[ID], bool) {
	m.world.allow(1)
	m.starts++
	m.judge.process = m.starts
	next, err := m.proc.Restart()
	if err == nil && next.Next == nil {
		err = fmt.Errorf("the process has no Next")
	}
	if next.Restart == nil {
		next.Restart = m.proc.Restart
	}
	if err != nil {
		m.judge.violate(NoStart, "restart at %s: %v", show(m.world.clock.Wall()), err)
	}
	return next, err == nil
}

// rounds is into how many parts the IDs of several callers are divided when they are
// spread over a time.
const rounds = 100

// ids makes n calls, spread over d, and reports whether to go on.
func (m *machine[ID]) ids(n int, d time.Duration) bool {
	parts := n
	if m.callers > 1 {
		parts = 1
		if d > 0 {
			parts = min(n, rounds)
		}
	}
	for i := range parts {
		if m.callers == 1 {
			m.issue(&m.proc, m.line, call{}, 1)
		} else if !m.together(n*(i+1)/parts - n*i/parts) {
			return false
		}
		m.world.clock.Advance(part(d, i+1, parts) - part(d, i, parts))
	}
	return true
}

// part is i of n parts of d. It does not overflow, however long d is.
func part(d time.Duration, i, n int) time.Duration {
	return d/time.Duration(n)*time.Duration(i) + d%time.Duration(n)*time.Duration(i)/time.Duration(n)
}

// issue makes one call to a process for n IDs. Several callers may do so at once.
func (m *machine[ID]) issue(p *Process[ID], l *line[ID], c call, n int) {
	m.mu.Lock()
	before, jumps := *l, m.jumps
	if !c.shared {
		m.world.allow(1 + n/4096) // some thousand readings for each ID are plenty, beside one long wait
		jumps = m.world.jumped.Load()
	}
	m.mu.Unlock()
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
	if c.stream > 0 {
		next = m.streams[c.stream]
	}
	id, err := next()
	ids = one(id, err)
	return ids, len(ids), err
}

// streamed makes n calls to the process's stream.
func (m *machine[ID]) streamed(n int) bool {
	const number = 1
	if m.proc.Stream == nil {
		return m.ids(n, 0)
	}
	if !m.open(number) {
		return false
	}
	for range n {
		m.issue(&m.proc, m.line, call{stream: number}, 1)
	}
	return true
}

// open starts the process's stream with this number, unless there is one. It
// reports whether to go on.
func (m *machine[ID]) open(number int) bool {
	if m.streams[number] != nil {
		return true
	}
	m.world.allow(1)
	stream := m.proc.Stream()
	if stream == nil {
		m.judge.violate(NoStart, "Stream returned nil")
		return false
	}
	if m.streams == nil {
		m.streams = map[int]func() (ID, error){}
	}
	m.streams[number] = stream
	return true
}

// batch makes one call for n IDs.
func (m *machine[ID]) batch(n int) bool {
	if m.proc.NextN == nil {
		return m.ids(n, 0)
	}
	m.issue(&m.proc, m.line, call{several: true}, n)
	return true
}

// settle ends the faults, lets the clock pass the last ID, and checks that calls are
// served.
func (m *machine[ID]) settle(script Script) {
	s := m.judge.subject
	m.world.calm()
	m.issue(&m.proc, m.line, call{}, 1) // by a process that has just started, perhaps
	wait := time.Second
	if s.Time == nil || m.line.unknown {
		wait += script.reach() + time.Minute + m.reserved()
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

// reserved is how much time all processes together may have reserved and left unused.
func (m *machine[ID]) reserved() time.Duration {
	starts := time.Duration(max(1, m.starts))
	return starts * min(m.judge.subject.Reserve, maxTime/starts)
}
