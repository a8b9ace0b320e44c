package fleettest

import (
	"context"
	"iter"
	"runtime/debug"
	"slices"
	"time"
)

// entry is something that happens at a time: a thread goes on, or do is called.
type entry struct {
	at     int64
	t      *Thread
	serial uint32
	do     func()
}

// push plans an entry, after all that come at the same time.
func (f *Fleet) push(e entry) {
	i, _ := slices.BinarySearchFunc(f.queue, e.at, func(e entry, at int64) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	f.queue = slices.Insert(f.queue, i, e)
}

// At has do called when d has passed.
func (f *Fleet) At(d int64, do func()) { f.push(entry{at: f.Now + max(d, 0), do: do}) }

// mostSteps is where a run counts as stuck: a thread does a great deal in no time.
const mostSteps = 20_000_000

// Run lets everything happen up to the time end.
func (f *Fleet) Run(end int64) {
	for len(f.queue) > 0 && !f.Over && f.queue[0].at <= end {
		e := f.queue[0]
		f.queue = f.queue[1:]
		f.Now = e.at
		if f.Steps++; f.Steps > mostSteps {
			f.Fail("stuck", "%d steps, and only %s have passed", f.Steps, time.Duration(f.Now))
			return
		}
		switch {
		case e.t == nil:
			e.do()
		case e.t.serial != e.serial || e.t.ended || e.t.P.Dead: // it was woken, or stopped, meanwhile
		case e.t.P.stopped > f.Now:
			f.push(entry{at: e.t.P.stopped, t: e.t, serial: e.serial})
		default:
			f.step(e.t)
		}
	}
	f.Now = max(f.Now, end)
}

func (f *Fleet) step(t *Thread) {
	f.Current = t
	_, alive := t.resume()
	f.Current = nil
	t.ended = !alive
	if t.P.Dead {
		return
	}
	t.P.program.Step()
	for _, t := range t.P.threads { // the wait of one may be over by what another has done
		switch {
		case t.ready != nil && t.ready():
			t.ready = nil
			t.Wake(0)
		case t.asleep && t.Changed != nil && t.Changed():
			t.CutShort()
		}
	}
}

// Thread is a coroutine of a process.
type Thread struct {
	P    *Process
	Name string
	Read func()          // is called at each reading of the clock; may be nil
	Ctx  context.Context // of the present call, or nil: its end cuts a wait short
	// Changed reports whether the thread's present wait is over for a reason of the
	// simulation. It may be nil.
	Changed func() bool

	f      *Fleet
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	serial uint32 // of the entry that may resume it
	ended  bool
	dead   bool // is being unwound

	ready  func() bool // what it waits for, or nil
	asleep bool        // waits for elapsed time
	cut    bool        // is to wait no longer
}

type unwind struct{}

// Spawn starts a thread of p.
func (p *Process) Spawn(name string, body func(*Thread)) *Thread {
	f := p.F
	t := &Thread{f: f, P: p, Name: name}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer t.guard()
		body(t)
	})
	p.threads = append(p.threads, t)
	t.Wake(0)
	return t
}

// guard ends a thread in good order, whatever became of it.
func (t *Thread) guard() {
	if cause := recover(); cause != nil && cause != (unwind{}) {
		t.dead = true
		t.f.Fail("panic", "%v\n%s", cause, debug.Stack())
	}
}

// Wake lets t go on when d has passed. A thread that was waiting for something else
// looks whether it has come, so to wake one for nothing does no harm.
func (t *Thread) Wake(d int64) {
	if t.ended {
		return
	}
	t.serial++
	t.f.push(entry{at: t.f.Now + max(d, 0), t: t, serial: t.serial})
}

// Block lets others run until t is woken.
func (t *Thread) Block() {
	if t.dead {
		return // unwinding takes no time
	}
	if !t.yield(struct{}{}) {
		t.dead = true
		panic(unwind{})
	}
}

// Pass lets others run for d, or until t is woken.
func (t *Thread) Pass(d int64) {
	if t.dead {
		return
	}
	t.Wake(d)
	t.Block()
}

// Sleep lets d pass on the machine's own clock, unless it is cut short.
func (t *Thread) Sleep(d time.Duration) {
	if t.cut = false; t.dead {
		return
	}
	m := t.P.M
	until := m.elapsed() + max(int64(d), shortestSleep)
	t.asleep = true
	for !t.cut && m.elapsed() < until {
		if m.elapsedRate == 0 {
			t.serial++ // until the clock goes on
			t.Block()
			continue
		}
		t.Pass((until-m.elapsed())*rateOne/m.elapsedRate + 1)
	}
	t.asleep = false
}

// shortestSleep is how long a wait takes at least, as on a real machine.
const shortestSleep = int64(20 * time.Microsecond)

// CutShort ends a wait of t on the clock, if it waits.
func (t *Thread) CutShort() {
	t.cut = true
	if t.asleep {
		t.Wake(0)
	}
}

// waitIsOver reports whether t has no reason to go on with a wait on the clock.
func (t *Thread) waitIsOver() bool {
	return t.dead || t.Ctx != nil && t.Ctx.Err() != nil || t.Changed != nil && t.Changed()
}

// Await lets others run until t can go on.
func (t *Thread) Await(ready func() bool) {
	for !ready() && !t.dead {
		t.ready = ready
		t.Block()
	}
	t.ready = nil
}

// Within returns a context for a call of t, with a deadline, that ends after d of true time, or is
// given up with end.
func (t *Thread) Within(d int64) (ctx context.Context, end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Ctx = ctx
	t.f.At(d, func() {
		cancel()
		if t.Ctx == ctx {
			t.cut = true
			t.Wake(0)
		}
	})
	return ctx, func() {
		t.Ctx = nil
		cancel()
	}
}

// Never is a time that no run reaches.
const Never = int64(1) << 60

// Hiccup is where a thread may be held up: for a moment, or for a long time, and alone or
// with its whole process.
func (t *Thread) Hiccup() {
	if t == nil {
		return
	}
	f := t.f
	if t.dead || f.Calm {
		return
	}
	r := f.Rng.Uint64()
	if r&15 == 0 {
		t.Pass(int64(r >> 32 % uint64(f.Period/64)))
	}
	if r>>8&1023 < f.PPause && !f.Calm {
		d := f.Between(0, 3*f.Period)
		f.Tally["pauses"]++
		if r>>20&1 == 0 {
			t.P.Stop(d)
		}
		t.Tracef("is held up for %s", time.Duration(d))
		t.Pass(d)
	}
	if r>>40&4095 < f.PDie && !f.Calm {
		t.P.Crash("it was killed here")
		t.Block()
	}
}

// Tracef adds a line to the trace.
func (t *Thread) Tracef(format string, args ...any) {
	t.f.Tracef("%s %s: "+format, append([]any{t.P.Name, t.Name}, args...)...)
}
