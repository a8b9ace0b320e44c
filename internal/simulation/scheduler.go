package simulation

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"
	"github.com/tickflake/tickflake/internal/simulation/seam"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/strategies"
)

// maxSteps is where a run counts as stuck: so many steps without the end of a
// call. A clock that is read coarsely may be polled many times before it moves.
const maxSteps = 100_000

// Run runs a program. It is safe for use by several goroutines at once, unless
// their Configs share a Trace.
func Run(c Config) Result {
	result := run(c)
	if len(result.Violations) == 0 || c.Trace != nil {
		return result
	}
	// Again, with a trace: it costs the runs that are clean nothing.
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

// stepsPerCall is about how many steps a call takes.
const stepsPerCall = 7

// tail keeps the last lines that are written to it, one by one.
type tail struct{ lines []string }

// tracedLines is how much of a schedule is kept of a run that failed.
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
	gen     *core.Generator // nil for a Core
	broken  Core
	callers []*caller
	current *caller // who runs, or nil outside of callers
	next    *caller // who goes on, when current yields
	over    bool    // ends the run

	events  []event // the faults
	event   int     // the next of them
	started []bool  // by operation
	urgency []int   // by party: the callers, then the faults
	lowest  int     // the lowest urgency given
	changes []int   // steps at which the most urgent loses it
	// progress is the step at which a call ended last.
	progress int
	lines    int // traced

	checks
	result Result
}

type event struct {
	op    Op
	after int // the operation that must have begun, or -1
}

func run(c Config) (result Result) {
	if err := c.validate(); err != nil {
		return Result{Config: c, Err: err}
	}
	s := &sim{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 0x7469636b666c616b)), result: Result{Config: c}}
	if err := s.prepare(); err != nil {
		return Result{Config: c, Err: err}
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

// prepare makes the clock, the generator and the callers.
func (s *sim) prepare() error {
	s.Callers = max(s.Callers, 1)
	if s.Tick == 0 {
		s.Tick = time.Millisecond
	}
	if s.TimeBits == 0 {
		s.TimeBits = 41
	}
	if s.Strategy == nil {
		s.Strategy = strategies.Default()
	}
	s.clock = clocktest.NewVirtual(epoch.Add(s.Start))
	s.reader = s.newReader()
	layout := core.Layout{Epoch: epoch, Tick: s.Tick, TimeBits: s.TimeBits, NodeBits: nodeBits, SequenceBits: s.SequenceBits}
	if err := layout.ValidateAt(s.clock.Wall()); err != nil {
		return err
	}
	if s.Core != nil {
		s.broken = s.Core(Env{Clock: s.reader, Observer: s, Layout: layout, Node: node})
	} else {
		gen, err := core.New(core.WithLayout(layout), core.WithNode(node), core.WithClock(s.reader),
			core.WithStrategy(s.Strategy), core.WithSequenceStart(seam.SequenceStart(s.FirstSequence)))
		if err != nil {
			return err
		}
		s.gen = gen
		gen.Observe(s)
	}
	if err := strategies.Validate(s.Strategy); err != nil {
		return err
	}
	s.prepareChecks()

	s.started = make([]bool, len(s.Ops))
	shares := make([][]int, s.Callers)
	turn, last, calls := 0, -1, 0
	for i, op := range s.Ops {
		if op.fault() {
			s.events = append(s.events, event{op, last})
			continue
		}
		shares[turn] = append(shares[turn], i)
		turn, last = (turn+1)%s.Callers, i
		if op.Kind < Close && op.Kind != Batch {
			calls += op.N - 1
		}
		calls++
		if op.Kind == Contexts {
			s.events = append(s.events, event{Op{Kind: cancel, N: i}, i})
		}
	}
	for i := range s.Callers {
		c := &caller{sim: s, id: i, ops: shares[i]}
		c.resume, c.stop = iter.Pull(c.run)
		s.callers = append(s.callers, c)
	}
	s.urgency = s.rng.Perm(s.Callers + 1)
	if s.Schedule == Priorities {
		for range s.Changes {
			s.changes = append(s.changes, s.rng.IntN(stepsPerCall*max(calls, 1)))
		}
	}
	return nil
}

// Before is where a caller may be overtaken: every access to a word begins here.
func (s *sim) Before() {
	c := s.current
	if c == nil || c.dead {
		return // nobody else is there, or c is being unwound
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

// pick returns who goes on, or nil when all are done. Faults that are picked
// happen at once.
func (s *sim) pick() *caller {
	faults := s.Callers
	for {
		var ready [MaxCallers + 1]int
		n, alive := 0, false
		for i, c := range s.callers {
			if c.state != done {
				alive = true
				if c.ready() {
					ready[n] = i
					n++
				}
			}
		}
		if !alive {
			return nil
		}
		if s.event < len(s.events) && (s.events[s.event].after < 0 || s.started[s.events[s.event].after]) {
			ready[n] = faults
			n++
		}
		if n == 0 {
			s.wakeNext()
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

// wakeNext lets true time pass until the first of those who sleep is due.
func (s *sim) wakeNext() {
	first := time.Duration(-1)
	for _, c := range s.callers {
		if c.state == asleep && (first < 0 || c.deadline < first) {
			first = c.deadline
		}
	}
	if s.trace() {
		s.tracef("all wait: time goes on to %s", first)
	}
	s.pass(first - s.clock.Passed())
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

// After takes note of an access that a word has had.
func (s *sim) After(a seam.Access) {
	c := s.current
	if c == nil || c.dead {
		return
	}
	s.note(uint64(c.id)<<8 | uint64(a.Op))
	s.note(a.New)
	if a.Word == freeWord {
		c.sawFree(a)
	}
	if a.New < a.Old && slices.Contains(growing, a.Word) {
		s.fail("word goes back", "%s", accessText(a))
	}
	if s.trace() {
		s.tracef("caller %d: %s", c.id, accessText(a))
	}
}

func accessText(a seam.Access) string {
	switch {
	case a.Op == seam.Load:
		return fmt.Sprintf("load %s = %#x", a.Word, a.Old)
	case a.Failed:
		return fmt.Sprintf("%s %s fails: it is %#x", a.Op, a.Word, a.Old)
	}
	return fmt.Sprintf("%s %s: %#x becomes %#x", a.Op, a.Word, a.Old, a.New)
}

// note adds a number to the schedule's hash.
func (s *sim) note(v uint64) {
	h := (s.result.Hash ^ v) * 0x9e3779b97f4a7c15
	s.result.Hash = h ^ h>>29
}

func (s *sim) trace() bool { return s.Trace != nil }

func (s *sim) tracef(format string, args ...any) {
	if s.over {
		return // what follows a violation is its unwinding
	}
	s.lines++
	if _, err := io.WriteString(s.Trace, fmt.Sprintf("%4d  %s\n", s.lines, fmt.Sprintf(format, args...))); err != nil {
		s.Trace = nil // the run goes on without
	}
}

// fail notes a violation by whoever runs, and ends the run.
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

// unwind is what a caller panics with that is stopped in the middle of a call.
type unwind struct{}

// guard ends a caller's coroutine in good order, whatever became of it.
func (c *caller) guard() {
	if c.late != nil {
		c.late.Stop()
	}
	p := recover()
	if p == nil || p == (unwind{}) {
		return
	}
	c.dead = true
	where := ""
	for line := range strings.Lines(string(debug.Stack())) {
		if at, _, ok := strings.Cut(line, " +0x"); ok && strings.Contains(at, "/simulation/") {
			where += " " + at[strings.Index(at, "/simulation/")+len("/simulation/"):]
		}
	}
	c.sim.fail("panic", "%v at%s", p, where)
}
