package generatortest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// world is the time of a script.
type world struct {
	clock *clocktest.Virtual // is handed to the generator

	reads atomic.Int64  // how often the clock may yet be read
	spun  atomic.Bool   // it was read more often than that: a call did nothing else, and was ended
	crowd atomic.Bool   // several callers run
	turn  atomic.Uint64 // counts the crowd's readings
	park  atomic.Pointer[parking]

	judging atomic.Int32 // how many readings by the judge are under way
	jumped  atomic.Int64 // how often the wall has jumped by a reading
	due     atomic.Bool  // there are jumps that wait for their reading
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

func newWorld(begin time.Time) *world {
	w := &world{clock: clocktest.NewVirtual(begin)}
	w.allow(1)
	w.clock.AutoAdvance(true)
	w.clock.Coarse(resolution)
	w.clock.OnRead(w.read)
	return w
}

// read runs before each reading of the clock. It ends the goroutine of a call that
// spins: code that is not ours can be ended in no other way.
func (w *world) read() {
	if w.judging.Load() > 0 {
		return // with several callers perhaps a call's reading too; then the next one counts
	}
	if w.reads.Add(-1) < 0 {
		w.spun.Store(true)
		runtime.Goexit()
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
func (w *world) jump() {
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

// quietly reads a clock for the judge: it does not count as a reading of a call.
func (w *world) quietly(read func() time.Time) time.Time {
	w.judging.Add(1)
	defer w.judging.Add(-1)
	return read()
}

// allow lets so many calls read the clock from now on.
func (w *world) allow(calls int) { w.reads.Store(patience * int64(calls)) }

// hold stops the next caller that reads the clock, after skip more readings, until
// wake is called, which ends its goroutine if the process is dead. A second call of wake
// does nothing.
func (w *world) hold(skip int) (parked <-chan struct{}, wake func(dead bool)) {
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

// fault does to the clock what a step says.
func (w *world) fault(s Step) {
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

// calm ends all faults.
func (w *world) calm() {
	w.mu.Lock()
	w.waiting = nil
	w.due.Store(false)
	w.mu.Unlock()
	w.clock.Freeze(0)
	w.clock.Slew(1, 0)
	w.clock.Coarse(resolution)
	w.clock.Advance(time.Second) // a leap second that is still due
}

// reader is the time for a generator that knows no clock, and so waits by reading the time, or by
// time.Sleep in a bubble.
type reader struct {
	clock *clocktest.Virtual

	mu    sync.Mutex    // of all below; it is not held while the clock is read
	slept time.Time     // by package time, up to which the clock has moved
	at    time.Duration // true time of the last reading
	reads int           // so many were at that time
	step  time.Duration // by which the next moves it
}

func newReader(clock *clocktest.Virtual) *reader {
	return &reader{clock: clock, slept: time.Now(), at: -1}
}

// busy is how many readings at one time are a burst. Those that follow wait.
const busy = 1 << 14

func (r *reader) now() time.Time {
	r.follow()
	return r.clock.Now()
}

// follow moves the clock by what the generator has slept, and further at each reading if it spins.
func (r *reader) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slept := time.Since(r.slept); slept > 0 {
		r.clock.Sleep(slept)
		r.slept = r.slept.Add(slept)
	}
	if passed := r.clock.Passed(); passed != r.at {
		r.at, r.reads, r.step = passed, 0, resolution
	} else if r.reads++; r.reads > busy {
		r.clock.Sleep(r.step)
		r.at, r.step = r.clock.Passed(), min(2*r.step, 24*time.Hour)
	}
}
