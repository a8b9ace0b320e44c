package simulation

import (
	"context"
	"fmt"
	"time"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"
)

// caller is one of those who issue IDs. It is a coroutine: it runs until it
// pauses, and pauses where others may come first.
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
	idle     bool          // blocked, but the run need not wait for what it does

	granting *core.Grant // is passing on a grant of the lease
	limit    uint64      // of a tenure, as seen last
	ending   bool        // it is this one that ends the generator

	stream *core.Stream
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
			var id core.ID
			var err error
			if s.broken != nil {
				id, err = s.broken.Next()
			} else {
				id, err = s.gen.Next()
			}
			c.end1(id, err)
		}
	case Batch:
		ids := make([]core.ID, op.N)
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
	case Close:
		c.call = call{} // no waits of the call before
		if err := s.gen.Close(); err != nil {
			s.fail("close", "error %v", err)
		}
		c.hasClosed()
	case Seal:
		c.call = call{}
		s.lease.seal()
		c.hasClosed()
	}
}

// hasClosed notes that the generator was closed, by whomever.
func (c *caller) hasClosed() {
	s := c.sim
	s.closed = true
	if !s.sealed {
		s.fail("close", "slots can still be taken")
	}
	if s.trace() {
		s.tracef("%s: has closed the generator", c)
	}
}

// String returns what c is called in a trace.
func (c *caller) String() string {
	if c.sim.lease != nil && c.sim.lease.party == c {
		return "lease"
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

// cut reports whether a wait of c ends before its time.
func (c *caller) cut() bool { return c.sim.done || c.ctx != nil && c.ctx.err != nil }

// told reports whether c waits for a grant, and there was one.
func (c *caller) told() bool {
	asking := &c.call.asking
	return asking.listens && asking.heard != c.sim.tells
}

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

// shortest is how long a wait takes at least. No sleep is shorter on a machine,
// and a clock that stands still a nanosecond before its tick would be polled
// for each nanosecond.
const shortest = 20 * time.Microsecond

// sleep is the clock's After. It returns once the wait is over, so that the
// select which follows has one case that is ready: time has sent, or there was a
// grant, or the context or the generator has ended.
func (c *caller) sleep(d time.Duration) <-chan time.Time {
	s := c.sim
	over := make(chan time.Time, 1)
	s.note(uint64(d))
	if s.trace() {
		s.tracef("%s: waits for %s", c, d)
	}
	c.checkWait(d)
	if !c.cut() && !c.told() {
		c.state, c.deadline = asleep, s.clock.Passed()+max(d, shortest)
		if s.next = s.pick(); s.next != c || s.over {
			c.pause()
		}
		c.state = running
	}
	if c.cut() || c.told() {
		c.call.cut = c.call.cut || c.cut()
		if c.late != nil {
			c.late.Stop()
		}
		// One who does not look at what ended the wait would hang for good.
		c.late = time.AfterFunc(2*time.Minute, func() { over <- time.Time{} })
		return over
	}
	c.call.waited += d
	s.waited += d
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
