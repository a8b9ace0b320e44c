package generatortest

import (
	"cmp"
	"time"
)

// few is how many IDs one of several callers asks for in a batch.
const few = 3

// together asks for n IDs by all callers at once.
func (m *machine[ID]) together(n int) {
	callers := m.script.Callers
	m.world.allow(1)
	m.world.crowd.Store(true)
	defer m.world.crowd.Store(false)
	m.jumps = m.world.jumped.Load()
	ended := make(chan bool, callers)
	for i := range callers {
		go m.call(i, n*(i+1)/callers-n*i/callers, ended)
	}
	lost := false
	for i := 0; i < callers && !lost; i++ {
		lost = !<-ended // the others may wait for a lock that this one, who spun perhaps, held
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost, m.over = lost, lost || m.world.spun.Load()
}

// call makes calls for n IDs: in turn for one, and for a few in a batch. Then it says whether all
// returned.
func (m *machine[ID]) call(caller, n int, ended chan<- bool) {
	returned := false
	defer func() { ended <- returned }() // even if a call ends this goroutine
	for turn := caller; n > 0; turn++ {
		this, want := call{shared: true, several: m.proc.NextN != nil && turn%2 == 1}, 1
		if this.several {
			want = min(few, n)
		}
		n -= want
		m.issue(&m.proc, m.line, this, want)
	}
	returned = true
}

// stop makes a call and holds it at its nth reading of the clock, unless it ends before. It
// goes on by wake, which must be called, or is dead by it; end then returns what it issued, or false if it
// ended its goroutine. A call that did so before it could be stopped has no wake.
func (m *machine[ID]) stop(n int) (wake func(dead bool), end func() ([]ID, bool)) {
	parked, wake := m.world.hold(n)
	next := m.proc.Next
	var ids []ID
	returned, done := false, make(chan struct{})
	m.world.allow(2)
	go func() {
		defer close(done)
		id, err := next()
		ids, returned = one(id, err), true
	}()
	select {
	case <-parked:
	case <-done:
		wake(false) // nobody else is to be stopped
		if m.lost, m.over = !returned, !returned; m.over {
			return nil, nil
		}
	}
	return wake, func() ([]ID, bool) { <-done; return ids, returned }
}

// kill ends the process in the middle of a call, at its nth reading of the clock.
func (m *machine[ID]) kill(n int) {
	wake, end := m.stop(n)
	if wake == nil {
		return
	}
	wake(true)
	ids, _ := end()
	m.judge.beside(m.line.process, ids)
}

// takeover stops the process in the middle of a call for d. Meanwhile another
// starts on its state and issues IDs; then the first wakes up, finishes the call
// and continues beside the other for a while. Each time the call is stopped at
// another reading of the clock: the first, the second, the third.
func (m *machine[ID]) takeover(d time.Duration) {
	const each = 20
	old, number := m.proc, m.line.process
	wake, end := m.stop(m.takeovers%3 + 1)
	if wake == nil {
		return
	}
	defer wake(false) // whatever happens, or the call is held for good
	m.takeovers++
	m.world.clock.Advance(d)
	if m.another() {
		m.line = &line[ID]{unknown: true, process: m.starts}
		for range each {
			m.issue(&m.proc, m.line, call{}, 1)
		}
	}
	m.world.allow(1)
	wake(false)
	ids, returned := end()
	if !returned {
		m.lost, m.over = true, true
		return
	}
	// The old process may be anything by now but a source of IDs twice. Its
	// calls may fail.
	m.judge.beside(number, ids)
	for range each {
		m.world.allow(1)
		id, err := old.Next()
		m.judge.beside(number, one(id, err))
		if !m.over {
			m.issue(&m.proc, m.line, call{}, 1)
		}
	}
}

// one is what a call issued.
func one[ID cmp.Ordered](id ID, err error) []ID {
	if err != nil {
		return nil
	}
	return []ID{id}
}
