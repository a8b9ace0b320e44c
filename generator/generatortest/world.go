package generatortest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// world is the time of a script.
type world interface {
	now() time.Time        // the wall
	passed() time.Duration // true time since the script began
	pass(d time.Duration)  // lets true time pass
	fault(s Step)          // what a step does to the clock
	calm()                 // ends all faults
	meet(on bool)          // several callers are about to run, or have run
	allow(calls int)       // so many calls may read the clock from now on
	jumps() int64          // how often the wall has jumped by a reading
	quiet(on bool)         // the judge is about to read the clock, or has read it
	spun() <-chan struct{} // closed when a call did nothing but read the clock, and was ended

	// hold stops the next caller that reads the clock, after skip more readings, until
	// wake is called, which ends its goroutine if the process is dead. A second call of wake
	// does nothing.
	hold(skip int) (parked <-chan struct{}, wake func(dead bool))
}

// virtual is a world whose clock is handed to the generator.
type virtual struct {
	clock *clocktest.Virtual

	reads atomic.Int64  // how often the clock may yet be read
	spin  chan struct{} // closed when it was read more often than that
	once  sync.Once     // closes it
	crowd atomic.Bool
	turn  atomic.Uint64 // counts the crowd's readings
	park  atomic.Pointer[parking]

	judging atomic.Int32 // how many readings by the judge are under way
	jumped  atomic.Int64
	due     atomic.Bool // there are jumps that wait for their reading
	mu      sync.Mutex
	waiting []jump // guarded by mu
}

// jump is a step of the wall that waits for its reading: the last of so many.
type jump struct {
	by       time.Duration
	readings int
}

// parking holds one caller.
type parking struct {
	skip         atomic.Int64  // readings until then
	parked, wake chan struct{} // closed when it is held, and when it may go on
	dead         bool          // it may not; is set before wake is closed
}

// patience is how often a call may read the clock. A call that reads it more often
// spins rather than waits. It must cover a clock that stands still for maxFreeze and is
// read once per resolution.
const patience = 1 << 22

// resolution is that of the clocks in a script. With a finer one, a generator that
// waits for the rest of its tick would wait a billion times while a clock stands still
// a nanosecond before the tick's end.
const resolution = time.Microsecond

func newVirtual(begin time.Time) *virtual {
	w := &virtual{clock: clocktest.NewVirtual(begin), spin: make(chan struct{})}
	w.clock.AutoAdvance(true)
	w.clock.Coarse(resolution)
	w.allow(1)
	w.clock.OnRead(w.read)
	return w
}

// read runs before each reading of the clock. It ends the goroutine of a call that
// spins: code that is not ours can be ended in no other way.
func (w *virtual) read() {
	if w.reads.Add(-1) < 0 {
		w.once.Do(func() { close(w.spin) })
		runtime.Goexit()
	}
	if w.judging.Load() > 0 {
		return // with several callers perhaps a call's reading too; then the next one counts
	}
	// One reading in four, in a pattern that never repeats: with every fourth, calls
	// of four readings would always meet at the same.
	if w.crowd.Load() && w.turn.Add(1)*0x9E3779B97F4A7C15>>62 == 0 {
		runtime.Gosched() // callers meet even on one processor
	}
	if w.due.Load() {
		w.jump()
	}
	if p := w.park.Load(); p != nil {
		if p.skip.Add(-1) == -1 {
			w.park.Store(nil) // other callers read on
			close(p.parked)
			if <-p.wake; p.dead {
				runtime.Goexit()
			}
		}
	}
}

// jump counts a reading for the jumps that wait for it, and carries out those whose
// turn it is. A jump is counted before the wall shows it, so that no call that saw
// it ends with the count it began with.
func (w *virtual) jump() {
	w.mu.Lock()
	defer w.mu.Unlock()
	later := w.waiting[:0]
	for _, j := range w.waiting {
		if j.readings--; j.readings > 0 {
			later = append(later, j)
			continue
		}
		w.jumped.Add(1)
		w.clock.Step(j.by)
	}
	w.waiting = later
	w.due.Store(len(later) > 0)
}

func (w *virtual) quiet(on bool) {
	if on {
		w.judging.Add(1)
	} else {
		w.judging.Add(-1)
	}
}

func (w *virtual) allow(calls int)       { w.reads.Store(patience * int64(calls)) }
func (w *virtual) jumps() int64          { return w.jumped.Load() }
func (w *virtual) spun() <-chan struct{} { return w.spin }
func (w *virtual) meet(on bool)          { w.crowd.Store(on) }

func (w *virtual) hold(skip int) (parked <-chan struct{}, wake func(dead bool)) {
	p := &parking{parked: make(chan struct{}), wake: make(chan struct{})}
	p.skip.Store(int64(skip))
	w.park.Store(p)
	var once sync.Once
	return p.parked, func(dead bool) {
		once.Do(func() {
			w.park.Store(nil)
			p.dead = dead
			close(p.wake)
		})
	}
}

func (w *virtual) now() time.Time        { return w.clock.Wall() }
func (w *virtual) passed() time.Duration { return w.clock.Passed() }
func (w *virtual) pass(d time.Duration)  { w.clock.Advance(d) }

func (w *virtual) fault(s Step) {
	switch s.Do {
	case StepWall:
		if s.Count > 0 {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waiting = append(w.waiting, jump{s.Time, s.Count})
			w.due.Store(true)
			return
		}
		w.clock.Step(s.Time)
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
	}
}

func (w *virtual) calm() {
	w.mu.Lock()
	w.waiting = nil
	w.due.Store(false)
	w.mu.Unlock()
	w.clock.Freeze(0)
	w.clock.Slew(1, 0)
	w.clock.Coarse(resolution)
	w.clock.Advance(time.Second) // a leap second that is still due
}

// bubble is the world of package time inside a bubble of testing/synctest, where time
// passes when all goroutines wait.
type bubble struct{ began time.Time }

func newBubble(begin time.Time) bubble {
	time.Sleep(time.Until(begin))
	return bubble{time.Now()}
}

func (b bubble) now() time.Time        { return time.Now().Round(0) }
func (b bubble) passed() time.Duration { return time.Since(b.began) }
func (b bubble) pass(d time.Duration)  { time.Sleep(d) }
func (b bubble) fault(Step)            {}
func (b bubble) calm()                 {}
func (b bubble) allow(int)             {}
func (b bubble) jumps() int64          { return 0 }
func (b bubble) quiet(bool)            {}
func (b bubble) spun() <-chan struct{} { return nil }
func (b bubble) meet(bool)             {}
func (b bubble) hold(int) (<-chan struct{}, func(bool)) {
	return nil, func(bool) {}
}
