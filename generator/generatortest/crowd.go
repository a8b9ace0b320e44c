package generatortest

import (
	"cmp"
	"sync"
	"time"
)

// crowd is several callers at work. Its lock also guards the judge and the line.
type crowd[ID cmp.Ordered] struct {
	*machine[ID]
	jumps   int64 // there had been when they began
	mu      sync.Mutex
	left    int  // IDs to be asked for
	running int  // callers
	over    bool // nobody listens any longer
	// done is closed when the last caller is, and gone when one was ended by the
	// call it made. The others may then wait for a lock that it held.
	done, gone chan struct{}
	lost       bool
}

// few is how many IDs one of several callers asks for in a batch.
const few = 3

// together asks for n IDs by all callers at once, and reports whether to go on.
func (m *machine[ID]) together(n int) bool {
	if m.proc.Stream != nil {
		for i := range m.callers {
			if !m.open(streamOf(i)) {
				return false
			}
		}
	}
	m.world.allow(1)
	m.world.crowd.Store(true)
	defer m.world.crowd.Store(false)
	c := &crowd[ID]{machine: m, jumps: m.world.jumped.Load(), left: n, running: m.callers, done: make(chan struct{}), gone: make(chan struct{})}
	for i := range m.callers {
		go c.call(i)
	}
	select {
	case <-c.done:
	case <-c.gone: // that of one who spun, perhaps
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.left = true, 0
	m.lost = m.lost || c.lost
	return !m.lost && !m.world.spun.Load()
}

// streamOf is the number of a caller's own stream. Single calls use stream 1.
func streamOf(caller int) int { return caller + 2 }

// call makes calls as long as there are any IDs left to ask for: in turn for one, for
// a few in a batch, and to a stream of the caller's own.
func (c *crowd[ID]) call(caller int) {
	calling := false
	defer func() { // even if a call ends this goroutine
		c.mu.Lock()
		defer c.mu.Unlock()
		if calling && !c.lost {
			c.lost = true
			close(c.gone)
		}
		if c.running--; c.running == 0 {
			close(c.done)
		}
	}()
	for turn := caller; ; turn++ {
		this, want := call{shared: true}, 1
		switch turn % 3 {
		case 1:
			if this.several = c.proc.NextN != nil; this.several {
				want = few
			}
		case 2:
			if c.proc.Stream != nil {
				this.stream = streamOf(caller)
			}
		}
		c.mu.Lock()
		if c.left == 0 {
			c.mu.Unlock()
			return
		}
		want = min(want, c.left)
		c.left -= want
		before := *c.line
		c.mu.Unlock()

		calling = true
		this.began = c.now(&c.proc)
		ids, filled, err := c.ask(&c.proc, this, want)
		this.ended = c.now(&c.proc)
		calling = false

		c.mu.Lock()
		if !c.over {
			// Readings are counted for all callers together: while calls of others
			// return, a call that spins continues. The others soon run out of calls.
			c.world.allow(1)
			this.at = c.world.passed()
			// One that began after a jump may meet an ID of a call that did not, and
			// has not returned yet.
			this.jumped = c.world.jumped.Load() > c.jumps
			c.judge.returned(c.line, before, this, ids, filled, err)
		}
		c.mu.Unlock()
	}
}

// stopped is a call that is held where it reads the clock.
type stopped[ID cmp.Ordered] struct {
	ids  []ID
	done chan struct{}   // closed when the call has ended
	held bool            // it could be stopped before that
	gone bool            // it ended its goroutine
	wake func(dead bool) // lets it go on, or ends it
}

// stop makes a call and holds it at its reading of the clock after skip others. Whatever
// happens then, wake must be called.
func (m *machine[ID]) stop(skip int) *stopped[ID] {
	parked, wake := m.world.hold(skip)
	next := m.proc.Next
	s := &stopped[ID]{done: make(chan struct{}), gone: true, wake: wake}
	m.world.allow(2)
	go func() {
		defer close(s.done)
		id, err := next()
		s.ids, s.gone = one(id, err), false
	}()
	select {
	case <-parked:
		s.held = true
	case <-s.done: // before it could be stopped
		wake(false) // nobody else is to be stopped
	}
	return s
}

// killed ends the process in the middle of a call, at its nth reading of the clock, and
// reports whether to go on.
func (m *machine[ID]) killed(n int) bool {
	s := m.stop(n - 1)
	s.wake(true)
	<-s.done
	m.judge.beside(m.line.process, m.world.passed(), s.ids)
	m.lost = m.lost || s.gone && !s.held
	return !m.lost
}

// takeover stops the process in the middle of a call for d. Meanwhile another
// starts on its state and issues IDs; then the first wakes up, finishes the call
// and continues beside the other for a while. Each time the call is stopped at
// another reading of the clock: the first, the second, the third. It reports
// whether to go on.
func (m *machine[ID]) takeover(d time.Duration) bool {
	const each = 20
	old, number := m.proc, m.line.process
	s := m.stop(m.takeovers % 3)
	defer s.wake(false) // whatever happens, or the call is held for good
	m.takeovers++
	if !s.held && s.gone {
		m.lost = true
		return false
	}
	m.world.clock.Advance(d)
	next, ok := m.another()
	if ok {
		m.proc, m.line, m.streams = next, &line[ID]{unknown: true, process: m.starts}, nil
		for range each {
			m.issue(&m.proc, m.line, call{}, 1)
		}
	}
	m.world.allow(1)
	s.wake(false)
	if <-s.done; s.gone {
		m.lost = true
		return false
	}
	// The old process may be anything by now but a source of IDs twice. What its
	// calls are worth is judged at the end, among all.
	m.judge.beside(number, m.world.passed(), s.ids)
	for range each {
		m.world.allow(1)
		id, err := old.Next()
		m.judge.beside(number, m.world.passed(), one(id, err))
		if ok {
			m.issue(&m.proc, m.line, call{}, 1)
		}
	}
	return ok
}

// one is what a call issued.
func one[ID cmp.Ordered](id ID, err error) []ID {
	if err != nil {
		return nil
	}
	return []ID{id}
}
