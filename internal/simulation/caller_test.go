//go:build simulate

package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/snowflake"
)

// caller issues IDs, or is the keeper. It is a coroutine: it runs until it pauses, and
// it pauses where other callers may run first.
type caller struct {
	sim    *sim
	id     int
	ops    []int
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	dead   bool // is being unwound

	state    state
	deadline time.Duration // of one asleep, in true time
	awaits   func() bool   // of one blocked
	idle     bool          // blocked, and the run need not wait for it

	making   *span         // that it made last
	granting *window.Range // is being put into the window, by the keeper
	failing  error         // that the keeper gives to Fail
	limit    uint64        // of a span, as seen last
	ending   bool          // has sealed the window, and is about to tell
	ended    bool          // has sealed the window

	stream *generator.Stream
	block  block          // of stream
	op     int            // the index of the present operation
	ctx    *cancelContext // of the present call, or nil
	late   *time.Timer    // see sleep
	call   call
}

type state uint8

const (
	running state = iota
	asleep
	blocked
	done
)

// run does the caller's operations. It is the coroutine's body.
func (c *caller) run(yield func(struct{}) bool) {
	c.yield = yield
	defer c.guard()
	for _, c.op = range c.ops {
		c.sim.started[c.op] = true
		c.do(c.sim.Ops[c.op])
		c.sim.Before() // between two calls others may come first, too
	}
}

func (c *caller) do(op Op) {
	s := c.sim
	switch op.Kind {
	case IDs:
		for range op.N {
			c.begin(single)
			var id snowflake.ID
			var err error
			if s.broken != nil {
				id, err = s.broken.Next()
			} else {
				id, err = s.gen.Next()
			}
			c.end1(id, err)
		}
	case Batch:
		ids := make([]snowflake.ID, op.N)
		c.begin(batch)
		n, err := s.gen.NextN(ids)
		if n < 0 || n > len(ids) || (err == nil) != (n == len(ids)) {
			s.fail("count", "%d of %d IDs, error %v", n, len(ids), err)
			return
		}
		c.end(ids[:n], err)
	case Stream:
		if c.stream == nil {
			c.stream = s.gen.Stream()
			c.block.last = -1
		}
		for range op.N {
			c.begin(streamed)
			id, err := c.stream.Next()
			c.end1(id, err)
		}
	case Contexts:
		c.ctx = &cancelContext{done: make(chan struct{}), deadline: s.Deadlines}
		if s.cancelled[c.op] {
			c.ctx.cancel()
		}
		for range op.N {
			c.begin(single)
			id, err := s.gen.NextContext(c.ctx)
			c.end1(id, err)
		}
		c.ctx = nil
	case Count:
		s.numbers.count(c, uint64(op.N))
	case Close:
		c.call = call{} // no waits of the call before
		if err := s.gen.Close(); err != nil {
			s.fail("close", "error %v", err)
		}
		c.hasClosed()
	case Seal:
		if s.numbers != nil {
			s.numbers.seal(c)
			return
		}
		c.call = call{}
		s.ticks.seal(c)
		c.hasClosed()
	}
}

// keep is the coroutine of the keeper: it does its operations of the program, and answers a
// window that asks for more.
func (c *caller) keep(yield func(struct{}) bool) {
	c.yield = yield
	defer c.guard()
	s := c.sim
	var more <-chan struct{} // a window of counted numbers asks its callers
	if s.ticks != nil {
		more = s.ticks.window.More()
	}
	for {
		c.op, c.idle = -1, true
		s.await(func() bool { return len(more) > 0 || s.due(s.errands[s.errand:]) })
		c.idle = false
		if len(more) > 0 {
			<-more
			s.ticks.answer(c)
			continue
		}
		op := s.errands[s.errand].op
		c.op = s.errands[s.errand].index
		s.errand++
		switch {
		case op.Kind == Extend:
			s.ticks.extend(c, uint64(op.N))
		case op.Kind == Move:
			s.ticks.move(c, int64(op.N), int64(op.D/s.Tick))
		case op.Kind == Queue:
			s.numbers.queue(c, uint64(op.N), uint64(op.D))
		case s.ticks != nil:
			s.ticks.revoke(c)
		default:
			s.numbers.revoke(c)
		}
	}
}

// checkTold checks that a change of the window, what, has closed the channel that a waiting
// caller took before it.
func (s *sim) checkTold(changed <-chan struct{}, what string) {
	select {
	case <-changed:
	default:
		s.fail("not told", "%s closed no channel", what)
	}
}

// hasClosed notes that the generator was closed.
func (c *caller) hasClosed() {
	s := c.sim
	s.closed = true
	if !s.sealed {
		s.fail("close", "slots can still be taken")
	}
	if c.ending {
		s.fail("not told", "Seal closed no channel")
	}
	if s.trace() {
		s.tracef("%s: has closed the generator", c)
	}
}

// String returns the name of c in a trace.
func (c *caller) String() string {
	if c == c.sim.keeper {
		return "keeper"
	}
	return fmt.Sprintf("caller %d", c.id)
}

// pause lets others run until the scheduler comes back to c.
func (c *caller) pause() {
	if !c.yield(struct{}{}) {
		c.dead = true
		panic(unwind{})
	}
}

// cut reports whether c's context has ended.
func (c *caller) cut() bool { return c.ctx != nil && c.ctx.err != nil }

// told reports whether the window has changed since c took the channel that tells.
func (c *caller) told() bool { return c.call.heard != c.sim.tells }

// ready reports whether c can run.
func (c *caller) ready() bool {
	switch c.state {
	case running:
		return true
	case asleep:
		return c.cut() || c.told() || c.deadline <= c.sim.clock.Passed()
	case blocked:
		return c.awaits()
	}
	return false
}

// shortest is the shortest wait. No sleep on a machine is shorter,
// and a clock that stands still a nanosecond before its tick would be polled
// every nanosecond.
const shortest = 20 * time.Microsecond

// sleep is the clock's After. It returns once the wait is over, so that the select which
// follows has a case that is ready: time has sent, or the window has changed, or the
// context has ended.
func (c *caller) sleep(d time.Duration) <-chan time.Time {
	s := c.sim
	over := make(chan time.Time, 1)
	s.note(uint64(d))
	if s.trace() {
		s.tracef("%s: waits for %s", c, d)
	}
	c.checkWait(d)
	began := s.clock.Passed()
	if !c.cut() && !c.told() {
		c.state, c.deadline = asleep, s.clock.Passed()+max(d, shortest)
		if s.next = s.pick(); s.next != c || s.over {
			c.pause()
		}
		c.state = running
	}
	waited := d
	if c.cut() || c.told() {
		waited = min(d, s.clock.Passed()-began)
	}
	c.call.waited += waited
	if c.call.asked { // the wait was for a grant
		c.call.ungranted += waited
		c.call.dry += waited
	}
	s.waited += waited
	if c.cut() || c.told() {
		c.call.cut = c.call.cut || c.cut()
		if c.late != nil {
			c.late.Stop()
		}
		// A caller that does not look at the reason for the end of its wait would hang.
		c.late = time.AfterFunc(2*time.Minute, func() { over <- time.Time{} })
		return over
	}
	over <- s.clock.Now()
	return over
}

// cancelContext is a context without the locks and goroutines of package context.
type cancelContext struct {
	done     chan struct{}
	err      error
	deadline bool // it says that it has one
}

func (c *cancelContext) cancel() {
	if c.err == nil {
		c.err = context.Canceled
		close(c.done)
	}
}

func (c *cancelContext) Deadline() (time.Time, bool) { return time.Time{}, c.deadline }
func (c *cancelContext) Done() <-chan struct{}       { return c.done }
func (c *cancelContext) Err() error                  { return c.err }
func (c *cancelContext) Value(any) any               { return nil }
