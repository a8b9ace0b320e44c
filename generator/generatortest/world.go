package generatortest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// world is the time of a script.
type world struct {
	clock *clocktest.Virtual // is handed to the generator

	reads atomic.Int64 // how often the clock may yet be read
	spun  atomic.Bool  // it was read more often than that: a call did nothing else, and was ended
	crowd atomic.Bool  // several callers run

	judging atomic.Int32 // how many readings by the judge are under way
	jumped  atomic.Int64 // how often the wall has jumped by a reading
	mu      sync.Mutex
	waiting []waiting // guarded by mu
}

// waiting is what waits for a reading: the last of so many.
type waiting struct {
	readings int
	do       func()
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
	// One reading in four, by chance: with every fourth, calls of four readings would always
	// meet at the same.
	if w.crowd.Load() && rand.N(4) == 0 {
		runtime.Gosched() // callers meet even on one processor
	}
	var due []func()
	w.mu.Lock()
	later := w.waiting[:0]
	for _, x := range w.waiting {
		if x.readings--; x.readings > 0 {
			later = append(later, x)
		} else {
			due = append(due, x.do)
		}
	}
	w.waiting = later
	w.mu.Unlock()
	for _, do := range due {
		do()
	}
}

// at has something done at the nth reading from now on, by who reads.
func (w *world) at(n int, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, waiting{n, do})
}

// quietly reads a clock for the judge: it does not count as a reading of a call.
func (w *world) quietly(read func() time.Time) time.Time {
	w.judging.Add(1)
	defer w.judging.Add(-1)
	return read()
}

// allow lets so many calls read the clock from now on.
func (w *world) allow(calls int) { w.reads.Store(patience * int64(calls)) }

// hold stops who reads the clock for the nth time from now on, until wake is called, which ends that
// goroutine if the process is dead. A second call of wake does nothing.
func (w *world) hold(n int) (parked <-chan struct{}, wake func(dead bool)) {
	stopped, woken := make(chan struct{}), make(chan bool, 1)
	w.at(n, func() {
		close(stopped)
		if <-woken {
			runtime.Goexit()
		}
	})
	return stopped, func(dead bool) {
		select {
		case woken <- dead:
		default:
		}
	}
}

// calm ends all faults.
func (w *world) calm() {
	w.mu.Lock()
	w.waiting = nil
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
