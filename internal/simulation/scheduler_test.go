//go:build simulate

package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// maxSteps is the number of steps without the end of a call after which a run counts as
// stuck. A clock that is read coarsely may be polled many times before it moves.
const maxSteps = 100_000

// Run runs a program. One runs at a time in a process, since all words of the process
// show themselves to one observer.
func Run(c Config) Result {
	result := run(c)
	if len(result.Violations) == 0 || c.Trace != nil {
		return result
	}
	// Run again with a trace, so that clean runs do not pay for a trace.
	var last tail
	c.Trace = &last
	again := run(c)
	result.Trace = last.lines
	if again.Hash != result.Hash {
		result.Violations = append(result.Violations, Violation{What: "not repeatable", Caller: -1, Op: -1,
			Detail: fmt.Sprintf("schedule %x, then %x", result.Hash, again.Hash)})
	}
	return result
}

// Search runs n programs, those of the seeds from 1 on, and returns the result of the first
// that fails. It reports false if none does.
func Search(program func(seed uint64) Config, n int) (Result, bool) {
	for seed := range uint64(n) {
		if result := Run(program(seed + 1)); result.Failed() {
			return result, true
		}
	}
	return Result{}, false
}

// stepsPerCall is about how many steps a call takes.
const stepsPerCall = 7

// tail keeps the last lines that are written to it, one by one.
type tail struct{ lines []string }

// tracedLines is how many lines of its trace a failed run keeps.
const tracedLines = 400

func (t *tail) Write(line []byte) (int, error) {
	if len(t.lines) == 2*tracedLines {
		t.lines = slices.Delete(t.lines, 0, tracedLines+1)
	}
	t.lines = append(t.lines, strings.TrimRight(string(line), "\n"))
	return len(line), nil
}

// sim is one run.
type sim struct {
	Config
	rng     *rand.Rand
	clock   *clocktest.Virtual
	reader  reader
	gen     *generator.Generator // nil for a Core
	broken  Core
	layout  snowflake.Layout
	node    int64         // that the generator begins with
	ticks   *tickKeeper   // or nil
	numbers *numberKeeper // or nil
	callers []*caller     // and the keeper, if there is one
	keeper  *caller       // or nil
	outside caller        // stands for the time before and after them
	current *caller       // the one that runs, or nil outside of callers
	next    *caller       // the one that runs when current yields
	over    bool          // ends the run

	events  []event // the faults
	event   int     // the next of them
	errands []event // the keeper's operations
	errand  int     // the next of them
	started []bool  // by operation
	urgency []int   // by party: the callers, the keeper, then the faults
	lowest  int     // the lowest urgency given
	changes []int   // steps at which the most urgent loses it
	// progress is the step at which a call ended last.
	progress int
	lines    int // traced

	words
	checks
	result Result
}

type event struct {
	op    Op
	index int // of op in the program
	after int // the operation that must have begun, or -1
}

// due reports whether the first of some events can happen.
func (s *sim) due(events []event) bool {
	return len(events) > 0 && (events[0].after < 0 || s.started[events[0].after])
}

func run(c Config) (result Result) {
	s := &sim{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 0x7469636b666c616b)), result: Result{Config: c}}
	s.outside = caller{sim: s, id: -1}
	word.Observed = s
	defer func() { word.Observed = nil }()
	if err := s.prepare(); err != nil {
		s.fail("program", "%v", err)
		return s.result
	}
	defer func() {
		for _, c := range s.callers {
			c.stop()
		}
	}()
	for s.next = s.pick(); s.next != nil && !s.over; {
		s.current = s.next
		if _, alive := s.current.resume(); !alive {
			s.current.state = done
			s.current = nil
			s.next = s.pick()
		}
	}
	s.current = nil
	if !s.over {
		s.finish()
	}
	return s.result
}

// Before lets others run: every access to a word begins here.
func (s *sim) Before() {
	c := s.current
	if c == nil || c.dead {
		return // there are no others, or c is being unwound
	}
	s.result.Steps++
	if s.result.Steps-s.progress > maxSteps {
		s.fail("stuck", "no call has ended in %d steps", maxSteps)
	}
	if !s.over {
		s.next = s.pick()
	}
	if s.next != c || s.over {
		c.pause()
	}
}

// await lets others run until ready reports true, and the caller is picked again.
func (s *sim) await(ready func() bool) {
	c := s.current
	c.state, c.awaits = blocked, ready
	if !s.over {
		s.next = s.pick()
	}
	if s.next != c || s.over {
		c.pause()
	}
	c.state = running
}

// pick returns the next caller, or nil when all are done. Faults that are picked
// happen at once.
func (s *sim) pick() *caller {
	faults := len(s.callers)
	for {
		var ready [MaxCallers + 2]int
		n, alive := 0, false
		for i, c := range s.callers {
			if c.state != done {
				alive = alive || !c.idle
				if c.ready() {
					ready[n] = i
					n++
				}
			}
		}
		if !alive {
			return nil
		}
		if s.due(s.events[s.event:]) {
			ready[n] = faults
			n++
		}
		if n == 0 {
			if !s.wakeNext() {
				return nil
			}
			continue
		}
		if i := s.choose(ready[:n]); i != faults {
			return s.callers[i]
		}
		s.happen(s.events[s.event].op)
		s.event++
	}
}

// choose picks one of those that are ready.
func (s *sim) choose(ready []int) int {
	switch s.Schedule {
	case Sticky:
		if s.current != nil && s.rng.IntN(8) != 0 {
			for _, i := range ready {
				if i == s.current.id {
					return i
				}
			}
		}
	case Priorities:
		best := ready[0]
		for _, i := range ready[1:] {
			if s.urgency[i] > s.urgency[best] {
				best = i
			}
		}
		for k, step := range s.changes {
			if step == s.result.Steps && len(ready) > 1 {
				s.changes[k] = -1
				s.lowest--
				s.urgency[best] = s.lowest
				return s.choose(ready)
			}
		}
		return best
	}
	if len(ready) == 1 {
		return ready[0]
	}
	return ready[s.rng.IntN(len(ready))]
}

// wakeNext lets true time pass until the first sleeper is due. It
// reports false if no caller sleeps, so that all wait for each other.
func (s *sim) wakeNext() bool {
	first := time.Duration(-1)
	for _, c := range s.callers {
		if c.state == asleep && (first < 0 || c.deadline < first) {
			first = c.deadline
		}
	}
	if first < 0 {
		s.fail("deadlock", "no caller can go on")
		return false
	}
	if s.trace() {
		s.tracef("all wait: time goes on to %s", first)
	}
	s.pass(first - s.clock.Passed())
	return true
}

// happen carries out a fault.
func (s *sim) happen(op Op) {
	if s.trace() {
		s.tracef("fault: %s", op)
	}
	s.note(uint64(op.Kind)<<32 | uint64(s.event))
	switch op.Kind {
	case Pass:
		s.pass(op.D)
	case Step:
		s.clock.Step(op.D)
	case Slew:
		s.clock.Slew(op.Rate, op.D)
	case Freeze:
		s.clock.Freeze(op.D)
	case Coarse:
		s.clock.Coarse(op.D)
	case Suspend:
		s.clock.Suspend(op.D)
	case Leap:
		s.clock.LeapSecond()
	case cancel:
		for _, c := range s.callers {
			if c.ctx != nil && c.op == op.N {
				c.ctx.cancel()
			}
		}
		s.cancelled[op.N] = true
	}
}

// note adds a number to the schedule's hash.
func (s *sim) note(v uint64) {
	h := (s.result.Hash ^ v) * 0x9e3779b97f4a7c15
	s.result.Hash = h ^ h>>29
}

func (s *sim) trace() bool { return s.Trace != nil }

func (s *sim) tracef(format string, args ...any) {
	if s.over {
		return // after a violation the callers are only unwound
	}
	s.lines++
	if _, err := io.WriteString(s.Trace, fmt.Sprintf("%4d  %s\n", s.lines, fmt.Sprintf(format, args...))); err != nil {
		s.Trace = nil // the run continues without a trace
	}
}

// fail notes a violation by the caller that runs, and ends the run.
func (s *sim) fail(what, format string, args ...any) {
	v := Violation{What: what, Detail: fmt.Sprintf(format, args...), Caller: -1, Op: -1}
	if s.current != nil {
		v.Caller, v.Op = s.current.id, s.current.op
	}
	s.result.Violations = append(s.result.Violations, v)
	if s.trace() {
		s.tracef("violation: %s", v)
	}
	s.over = true
}

// unwind is the panic of a caller that is stopped in the middle of a call.
type unwind struct{}

// guard ends a caller's coroutine, also after a panic.
func (c *caller) guard() {
	if c.late != nil {
		c.late.Stop()
	}
	p := recover()
	if p == nil || p == (unwind{}) {
		return
	}
	c.dead = true
	c.sim.fail("panic", "%v at%s", p, where())
}

// where returns the functions of this module that are on the stack, with their lines.
func where() string {
	where, name := "", ""
	for line := range strings.Lines(string(debug.Stack())) {
		if function, ok := strings.CutPrefix(line, "github.com/tickflake/tickflake/"); ok {
			name = function[:strings.LastIndex(function, "(")] // without the arguments
		} else if at, _, ok := strings.Cut(line, " +0x"); ok && name != "" {
			where += " " + name + at[strings.LastIndex(at, ":"):]
			name = ""
		}
	}
	return where
}
