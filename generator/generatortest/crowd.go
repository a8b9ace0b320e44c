package generatortest

import (
	"cmp"
	"sync"
	"time"
)

// crowd is several callers at work. The lock guards the judge and the line, too.
type crowd[ID cmp.Ordered] struct {
	*machine[ID]
	mu      sync.Mutex
	left    int  // calls to be made
	running int  // callers
	over    bool // nobody listens any longer
	// done is closed when the last caller is, and gone when one was ended by the
	// call it made. The others may then wait for a lock that it held.
	done, gone chan struct{}
	lost       bool
}

// together makes n calls by all callers at once, and reports whether to go on.
func (m *machine[ID]) together(n int) bool {
	m.world.allow(m.callers)
	m.world.meet(true)
	defer m.world.meet(false)
	c := &crowd[ID]{machine: m, left: n, running: m.callers, done: make(chan struct{}), gone: make(chan struct{})}
	for range m.callers {
		go c.call()
	}
	select {
	case <-c.done:
	case <-c.gone: // that of one who spun, perhaps
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.left = true, 0
	m.lost = m.lost || c.lost
	return !m.lost && !m.spins()
}

// call makes calls as long as there are any left to make.
func (c *crowd[ID]) call() {
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
	for {
		c.mu.Lock()
		if c.left == 0 {
			c.mu.Unlock()
			return
		}
		c.left--
		before := *c.line
		c.mu.Unlock()

		calling = true
		this := call{began: c.now(&c.proc), shared: true}
		id, err := c.proc.Next()
		this.ended = c.now(&c.proc)
		calling = false

		c.mu.Lock()
		if !c.over {
			c.world.allow(c.callers) // as long as calls return, nobody waits for one that spins
			this.at = c.world.passed()
			c.judge.returned(c.line, before, this, one(id, err), err)
		}
		c.mu.Unlock()
	}
}

// takeover stops the process in the middle of a call for d. Meanwhile another
// starts on its state and issues IDs; then the first wakes up, finishes the call
// and goes on beside the other for a while. Each time the call is stopped at
// another reading of the clock: the first, the second, the third. It reports
// whether to go on.
func (m *machine[ID]) takeover(d time.Duration) bool {
	const each = 20
	type answer struct {
		id  ID
		err error
	}
	old := m.proc
	parked, wake := m.world.hold(m.takeovers % 3)
	defer wake() // whatever happens, or the call is held for good
	m.takeovers++

	done := make(chan answer, 1)
	m.world.allow(2)
	go func() {
		defer close(done)
		id, err := old.Next()
		done <- answer{id, err}
	}()
	var a answer
	held, returned := true, true
	select {
	case <-parked:
	case a, returned = <-done: // before it could be stopped
		held = false
		wake() // nobody else is to be stopped
	}
	if !returned {
		m.lost = true
		return false
	}
	m.world.pass(d)
	next, ok := m.another()
	if ok {
		m.proc, m.line, m.stream = next, &line[ID]{unknown: true}, nil
		for range each {
			m.next(&m.proc, m.line)
		}
	}
	if held {
		m.world.allow(1)
		wake()
		if a, returned = <-done; !returned {
			m.lost = true
			return false
		}
	}
	// The old process may be anything by now but a source of IDs twice. What its
	// calls are worth is judged at the end, among all.
	m.judge.beside(m.world.passed(), one(a.id, a.err))
	for range each {
		m.world.allow(1)
		id, err := old.Next()
		m.judge.beside(m.world.passed(), one(id, err))
		if ok {
			m.next(&m.proc, m.line)
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
