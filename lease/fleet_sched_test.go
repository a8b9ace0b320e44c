package lease_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"
)

// fleet is one run of the simulation: machines with processes that hold leases, over
// one store, on a scheduler that a seed drives. True time is in nanoseconds from the
// start of the run.
//
// Every process is made of a few threads, which are coroutines. One thread runs at a
// time, and others come first only where it asks for time: at a reading of the
// clock, at a wait, on the way to the store and back. So two runs of a seed are the
// same in every step, and the race detector has nothing to see here; what goes wrong
// between two machine instructions is for tests with real goroutines.
type fleet struct {
	plan
	seed    uint64
	rng     *rand.Rand
	now     int64
	queue   []entry
	order   uint64
	steps   int
	current *thread // who runs, or nil
	calm    bool    // the faults are over
	over    bool

	store    *virtualStore
	machines []*machine
	all      []*process // in the order of their start
	checks
	tally

	hash  uint64
	trace *fleetTrace // or nil
}

// entry is something that happens at a time: a thread goes on, or do is called.
type entry struct {
	at     int64
	order  uint64
	t      *thread
	serial uint32
	do     func()
}

func (e entry) before(o entry) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// push and pop keep queue a heap. Of two entries for the same time, the one that was
// pushed first comes first.
func (f *fleet) push(e entry) {
	f.order++
	e.order = f.order
	q := append(f.queue, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
	f.queue = q
}

func (f *fleet) pop() entry {
	q := f.queue
	first, last := q[0], q[len(q)-1]
	q[len(q)-1] = entry{}
	q = q[:len(q)-1]
	f.queue = q
	for i := 0; len(q) > 0; {
		down := 2*i + 1
		if down+1 < len(q) && q[down+1].before(q[down]) {
			down++
		}
		if down >= len(q) || !q[down].before(last) {
			q[i] = last
			break
		}
		q[i] = q[down]
		i = down
	}
	return first
}

// at has do called when d has passed.
func (f *fleet) at(d int64, do func()) { f.push(entry{at: f.now + max(d, 0), do: do}) }

// mostSteps is where a run counts as stuck: somebody does a great deal in no time.
const mostSteps = 20_000_000

// run lets everything happen up to the time end.
func (f *fleet) run(end int64) {
	for len(f.queue) > 0 && !f.over && f.queue[0].at <= end {
		e := f.pop()
		f.now = e.at
		if f.steps++; f.steps > mostSteps {
			f.fail("stuck", "%d steps, and only %s have passed", f.steps, time.Duration(f.now))
			return
		}
		switch {
		case e.t == nil:
			e.do()
		case e.t.serial != e.serial || e.t.ended || e.t.p.dead: // it was woken, or stopped, meanwhile
		case e.t.p.stopped > f.now:
			f.push(entry{at: e.t.p.stopped, t: e.t, serial: e.serial})
		default:
			f.step(e.t)
		}
	}
	f.now = max(f.now, end)
}

func (f *fleet) step(t *thread) {
	f.note(uint64(t.id))
	f.current = t
	_, alive := t.resume()
	f.current = nil
	if !alive {
		t.ended = true
	}
	t.p.looks()
}

// thread is a coroutine of a process.
type thread struct {
	f      *fleet
	p      *process
	id     int
	name   string
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	serial uint32 // of the entry that may resume it
	ended  bool
	dead   bool // is being unwound

	asleep bool // waits for elapsed time
	cut    bool // is to wait no longer
	issuer
}

type unwind struct{}

// spawn starts a thread of p.
func (f *fleet) spawn(p *process, name string, body func(*thread)) *thread {
	f.threads++
	t := &thread{f: f, p: p, id: f.threads, name: name, issuer: issuer{latest: -1}}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer t.guard()
		body(t)
	})
	p.threads = append(p.threads, t)
	f.wake(t, 0)
	return t
}

// guard ends a thread in good order, whatever became of it.
func (t *thread) guard() {
	if cause := recover(); cause != nil && cause != (unwind{}) {
		t.dead = true
		t.f.fail("panic", "%v\n%s", cause, shortStack())
	}
}

func shortStack() string {
	var b strings.Builder
	for line := range strings.Lines(string(debug.Stack())) {
		if strings.Contains(line, "tickflake") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// wake lets t go on when d has passed. A thread that was waiting for something else
// looks whether it has come, so to wake one for nothing does no harm.
func (f *fleet) wake(t *thread, d int64) {
	if t.ended {
		return
	}
	t.serial++
	f.push(entry{at: f.now + max(d, 0), t: t, serial: t.serial})
}

// block lets others run until somebody wakes t.
func (t *thread) block() {
	if t.dead {
		return // unwinding takes no time
	}
	if !t.yield(struct{}{}) {
		t.dead = true
		panic(unwind{})
	}
}

// pass lets others run for d, or until somebody wakes t.
func (t *thread) pass(d int64) {
	if t.dead {
		return
	}
	t.f.wake(t, d)
	t.block()
}

// sleep lets d pass on the machine's own clock, unless it is cut short.
func (t *thread) sleep(d time.Duration) {
	if t.dead {
		return
	}
	m := t.p.m
	until := m.elapsed() + max(int64(d), shortestSleep)
	t.asleep = true
	for !t.cut && m.elapsed() < until {
		if m.elapsedRate == 0 {
			t.serial++ // until the clock goes on
			t.block()
			continue
		}
		t.pass((until-m.elapsed())*rateOne/m.elapsedRate + 1)
	}
	t.asleep = false
}

// shortestSleep is how long a wait takes at least, as on a real machine.
const shortestSleep = int64(20 * time.Microsecond)

// cutShort ends a wait of t.
func (t *thread) cutShort() {
	t.cut = true
	if t.asleep {
		t.f.wake(t, 0)
	}
}

// hiccup is where a thread may be held up: for a moment, or for longer than a grant
// lasts, and alone or with its whole process.
func (t *thread) hiccup() {
	if t == nil {
		return
	}
	f := t.f
	if t.dead || f.calm {
		return
	}
	r := f.rng.Uint64()
	if r&15 == 0 {
		t.pass(int64(r >> 32 % uint64(f.period/64)))
	}
	if r>>8&1023 < f.pPause && !f.calm {
		d := f.between(0, 3*f.period)
		f.pauses++
		if r>>20&1 == 0 {
			t.p.stop(d)
		}
		if f.trace != nil {
			t.tracef("is held up for %s", time.Duration(d))
		}
		t.pass(d)
	}
	if r>>40&4095 < f.pDie && !f.calm {
		t.p.crash("it was killed here")
		t.block()
	}
}

// between draws from low up to high.
func (f *fleet) between(low, high int64) int64 {
	if high <= low {
		return low
	}
	return low + f.rng.Int64N(high-low)
}

// often is true in n of 1024 cases.
func (f *fleet) often(n uint64) bool { return n > 0 && f.rng.Uint64()&1023 < n }

// note adds a number to the hash of what has happened.
func (f *fleet) note(v uint64) {
	h := (f.hash ^ v ^ uint64(f.now)<<20) * 0x9e3779b97f4a7c15
	f.hash = h ^ h>>29
}

// fleetTrace keeps the last lines of what happened.
type fleetTrace struct {
	lines []string
	most  int
}

func (f *fleet) tracef(format string, args ...any) {
	if f.trace == nil || f.over {
		return
	}
	tr := f.trace
	if len(tr.lines) >= 2*tr.most {
		tr.lines = append(tr.lines[:0], tr.lines[tr.most:]...)
	}
	tr.lines = append(tr.lines, fmt.Sprintf("%12s  %s", time.Duration(f.now), fmt.Sprintf(format, args...)))
}

func (t *thread) tracef(format string, args ...any) {
	t.f.tracef("%s %s: %s", t.p.name, t.name, fmt.Sprintf(format, args...))
}
