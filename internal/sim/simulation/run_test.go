//go:build simulate

package simulation

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// maxSteps is the number of steps without the end of a call after which a run counts as stuck. A
// clock that is read coarsely may be polled many times before it moves.
const maxSteps = 100_000

// program makes the callers of a run, and returns what is checked when all of them are done.
type program func(r *run) (finish func())

// run is one run of a program: coroutines, of which one runs at a time.
type run struct {
	*rand.Rand
	clock   *clocktest.Virtual
	callers []*caller
	current *caller                    // the one that runs, or nil before and after all of them
	next    *caller                    // the one that runs when current pauses
	rested  func()                     // is called before time passes because all callers wait
	moved   func(*caller, word.Access) // is called after each access by a caller

	marker word.Uint64 // of the memory, which is copied when it changes
	marks  []mark      // of grants, ascending

	schedule schedule
	urgency  []int // by caller
	changes  []int // steps at which the most urgent loses it

	steps, progress int            // so far, and when a call ended last
	tells           int            // how often a change of the window was told
	backs           uint64         // how often the clock was stepped back
	met             map[string]int // how often a caller was held up across something
	tracing         bool
	trace           []string // the last steps
	failure         string
}

// mark is what the marker was when all was granted from a slot or number on.
type mark struct{ from, value uint64 }

// copied spawns a caller that copies the memory a few times.
func (r *run) copied(times int) {
	r.spawn("copier", func(*caller) {
		for range times {
			for range r.IntN(80) {
				r.Before()
			}
			r.marker.Store(r.marker.Load() + 1)
		}
	})
}

// unnoticed reports whether the memory was copied since the last grant.
func (r *run) unnoticed() bool {
	r.current, r.next = nil, r.current // no step
	defer func() { r.current = r.next }()
	return r.marker.Load() != r.marks[len(r.marks)-1].value
}

// notice makes a keeper notice that the memory was copied: nothing is granted any more that was granted before,
// but above it, from a slot or number on.
func (r *run) notice(w *window.Ticks, from func() uint64) {
	value := r.marker.Load()
	w.SetMark(value)
	w.Revoke()
	r.marks = append(r.marks, mark{from(), value})
}

// original checks that the caller has looked at the marker since it took a slot or number, and that the
// grant was made to the memory that it saw. The memory may have been copied after the look, and before the call has returned.
func (r *run) original(c *caller, at uint64) {
	i := len(r.marks) - 1
	for r.marks[i].from > at {
		i--
	}
	if !c.call.looked || c.call.saw != r.marks[i].value {
		r.failf("a copy returns %#x, which its original has: it looked %t and saw %d, the grant had %d", at, c.call.looked, c.call.saw, r.marks[i].value)
	}
}

// schedule is how the next caller is picked. They find different bugs: the first mixes thoroughly; the
// others stop one caller in the middle of a call while the others make many calls.
type schedule int

const (
	uniform schedule = iota
	sticky           // stays with the same caller seven times of eight
	// priorities gives each a random priority and runs the highest that can run; at a few random steps
	// that one becomes the lowest. It finds a bug which takes d such constraints, among n callers in k
	// steps, with a probability of at least 1/(n·k^(d-1)): Burckhardt, Kothari, Musuvathi and
	// Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.
	priorities
)

// perform runs a program with a seed.
func perform(p program, seed uint64, trace bool) *run {
	r := &run{Rand: rand.New(rand.NewPCG(seed, 0x7469636b666c616b)), tracing: trace, met: map[string]int{}, rested: func() {}, moved: func(*caller, word.Access) {}}
	word.Name(&r.marker, "marker")
	r.marks = []mark{{}}
	r.clock = clocktest.NewVirtual(epoch.Add(time.Duration(r.IntN(2000)) * 10 * us))
	r.schedule = schedule(r.IntN(3))
	for range 1 + r.IntN(4) {
		r.changes = append(r.changes, r.IntN(400))
	}
	word.Observed = r
	defer func() { word.Observed = nil }()
	finish := p(r)
	defer func() {
		for _, c := range r.callers {
			c.stop()
		}
	}()
	r.urgency = r.Perm(len(r.callers))
	for r.next = r.pick(); r.next != nil && r.failure == ""; {
		r.current = r.next
		if _, alive := r.current.resume(); !alive {
			r.current.done = true
			r.next = r.pick()
		}
	}
	r.current = nil
	if r.failure == "" {
		defer r.guard()
		finish()
	}
	return r
}

// search runs a program with n seeds. It returns what callers were held up across, and how often.
func search(t *testing.T, p program, n int) (met map[string]int) {
	t.Helper()
	met = map[string]int{}
	for seed := range uint64(n) {
		r := perform(p, seed, false)
		for what, often := range r.met {
			met[what] += often
		}
		if r.failure != "" {
			again := perform(p, seed, true)
			t.Fatalf("seed %d: %s\n%s\nwith the trace: %s", seed, r.failure, strings.Join(again.trace, "\n"), again.failure)
		}
	}
	return met
}

// caller is a coroutine: it runs until it pauses, and it pauses where others may run first.
type caller struct {
	name   string
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	done   bool
	dead   bool // is being unwound
	idle   bool // waits, and the run need not wait for it

	awaits   func() bool   // nil: it can run
	deadline time.Duration // of that wait, in true time

	call call
}

// spawn makes a caller.
func (r *run) spawn(name string, body func(c *caller)) {
	c := &caller{name: name}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		defer r.guard()
		body(c)
	})
	r.callers = append(r.callers, c)
}

// unwind is the panic of a caller that is stopped in the middle of a call.
type unwind struct{}

// guard ends a coroutine, also after a panic.
func (r *run) guard() {
	if p := recover(); p != nil && p != (unwind{}) {
		if r.current != nil {
			r.current.dead = true
		}
		r.failf("panic: %v\n%s", p, debug.Stack())
	}
}

// Before lets others run: every access to a word begins here.
func (r *run) Before() {
	c := r.current
	if c == nil || c.dead {
		return // there are no others, or c is being unwound
	}
	if r.steps++; r.steps-r.progress > maxSteps {
		r.failf("stuck: no call has ended in %d steps", maxSteps)
	}
	r.yield(c)
}

// await lets others run until ready reports true, or true time reaches the deadline.
func (r *run) await(ready func() bool, deadline time.Duration) {
	c := r.current
	c.awaits, c.deadline = ready, deadline
	r.yield(c)
	c.awaits = nil
}

const forever = time.Duration(math.MaxInt64)

func (r *run) yield(c *caller) {
	if r.failure == "" {
		r.next = r.pick()
	}
	if (r.next != c || r.failure != "") && !c.yield(struct{}{}) {
		c.dead = true
		panic(unwind{})
	}
}

// pick returns the next caller, or nil when all are done.
func (r *run) pick() *caller {
	for {
		var ready []int
		alive, first := false, forever
		for i, c := range r.callers {
			if c.done {
				continue
			}
			alive = alive || !c.idle
			if c.awaits == nil || c.deadline <= r.clock.Passed() || c.awaits() {
				ready = append(ready, i)
			} else {
				first = min(first, c.deadline)
			}
		}
		switch {
		case !alive || r.failure != "":
			return nil
		case len(ready) > 0:
			return r.callers[r.choose(ready)]
		case first == forever:
			r.failf("deadlock: no caller can go on")
			return nil
		}
		// All wait.
		current := r.current
		r.current = nil
		r.rested()
		r.current = current
		r.clock.Advance(first - r.clock.Passed())
	}
}

// choose picks one of those that are ready.
func (r *run) choose(ready []int) int {
	switch r.schedule {
	case sticky:
		if i := slices.Index(r.callers, r.current); slices.Contains(ready, i) && r.IntN(8) != 0 {
			return i
		}
	case priorities:
		best := slices.MaxFunc(ready, func(a, b int) int { return r.urgency[a] - r.urgency[b] })
		if i := slices.Index(r.changes, r.steps); i >= 0 && len(ready) > 1 {
			r.changes[i] = -1
			r.urgency[best] = slices.Min(r.urgency) - 1
			return r.choose(ready)
		}
		return best
	}
	return ready[r.IntN(len(ready))]
}

// Below draws where a sequence begins: often near the end of the tick, where few slots are left.
func (r *run) Below(n uint64) uint64 {
	if r.IntN(3) == 0 {
		return n - 1 - min(n-1, r.Uint64N(6))
	}
	return r.Uint64N(n)
}

// After takes note of an access that a word has had.
func (r *run) After(a word.Access) {
	c := r.current
	if c != nil && !c.dead {
		r.note("%s %s: %#x, %#x", a.Op, a.Name, a.Old, a.New)
		r.moved(c, a)
	}
	switch {
	case a.Name == "changed" && a.Op != word.Load:
		r.tells++
	case c == nil:
	case a.Name == "changed":
		c.call.heard = r.tells
	case a.Name == "marker":
		c.call.looked, c.call.saw = true, a.New
	case a.Name == "free" && (a.Op == word.CompareAndSwap || a.Op == word.Add) && !a.Failed:
		c.call.looked = false
	case a.Name == "err" && a.Op == word.Load:
		c.call.dry = true
	}
}

// note adds a step to the trace if there is one.
func (r *run) note(format string, args ...any) {
	if r.tracing && r.failure == "" {
		name := "-"
		if r.current != nil {
			name = r.current.name
		}
		r.trace = append(r.trace[max(0, len(r.trace)-400):], name+": "+fmt.Sprintf(format, args...))
	}
}

// failf notes what must not happen, and ends the run.
func (r *run) failf(format string, args ...any) {
	if r.failure == "" {
		r.failure = fmt.Sprintf(format, args...)
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// told checks that a change of the window has closed the channel that a waiting caller took before it.
func (r *run) told(changed <-chan struct{}, what string) {
	if !closed(changed) {
		r.failf("not told: %s closed no channel", what)
	}
}

func pick[T any](r *run, of ...T) T { return of[r.IntN(len(of))] }
