package generator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Grant is the permission to issue IDs with a node number in the ticks from Floor
// up to, but not including, Limit. Whoever grants it promises that nobody else, in
// this process or any other, now or ever, has it for any of these ticks.
//
// Ticks are counted from the layout's epoch on. A Limit beyond the layout's time is
// the end of that.
//
// Grants are made by package lease. Fields may be added in a minor version; do not
// make one elsewhere.
type Grant struct {
	Node         int64
	Floor, Limit uint64
	// Renew is the tick from which on an ID makes the generator call Lease.Need, so
	// that a burst which runs ahead of the clock finds more granted in time.
	Renew uint64
}

// Lease grants node numbers and ticks to a [Generator]. It is implemented by package
// lease, as [*github.com/tickflake/tickflake/lease.Keeper]. Methods may be added in a
// minor version; do not implement it elsewhere.
//
// A Lease is bound to one generator. Its methods must be safe for use by several
// goroutines at once.
type Lease interface {
	// Layout is that of the IDs, and Clock what tells the time.
	Layout() snowflake.Layout
	Clock() Clock
	// Bind is called once, by [New]. It returns the first grant; h is where the
	// later ones go, as soon as Bind has returned.
	Bind(h Holder) (Grant, error)
	// Need says that IDs have come close to the end of the grant, or to it. It
	// must not wait for anybody else.
	Need()
	// Err is why there is no further grant at the moment, or nil. It wraps [ErrLost]
	// if there will never be one.
	Err() error
	// Release gives the lease back, once its generator is closed. The first tick
	// that was not used is end: neither it nor any after it will be.
	Release(ctx context.Context, end uint64) error
}

// Holder is what a [Lease] sees of its generator. Its methods are safe for use by
// several goroutines at once; Grant has one caller at a time.
//
// It is implemented by this package, for package lease. Methods may be added in a
// minor version; do not implement it elsewhere.
type Holder interface {
	// Grant extends what the generator holds, if it is the same node number and
	// begins within, or else has it go on with the new node number at once. IDs keep
	// their order over the change, which costs the rest of the tick.
	Grant(Grant)
	// Tick is the first tick of which no ID was issued; nor was any after it.
	Tick() uint64
	// Seal closes the generator without giving the lease back, and returns the
	// first tick that was not used, if it is this call that closed it.
	Seal() (end uint64, first bool)
}

// ErrNotGranted is what a [GrantError] is, in the sense of [errors.Is].
var ErrNotGranted = errors.New("no time granted")

// ErrLost is wrapped by the error of a [Lease] that grants nothing any more, so that
// no call waits for that, however patient its strategy is.
var ErrLost = errors.New("lost for good")

// GrantError reports that a generator has used up, or let pass, all the time that
// its lease was granted, and got no more. It issues IDs again as soon as there is a
// grant: nothing needs to be restarted, unless it wraps [ErrLost].
type GrantError struct {
	Node   int64         // the node number that was held
	Limit  time.Time     // where the grant ended
	Past   time.Duration // from Limit to the clock's reading: below zero if IDs ran ahead of the clock
	Waited time.Duration // how long the call had waited
	Err    error         // why the lease has no further grant, or nil if it did not say
	// Context is the error of the call's context if it ended the wait, with its cause,
	// or nil.
	Context error
}

func (e *GrantError) Error() string {
	when := fmt.Sprintf("%s ago", e.Past)
	if e.Past < 0 {
		when = fmt.Sprintf("%s ahead of the clock", -e.Past)
	}
	text := fmt.Sprintf("grant of node %d ended at %s, %s, and there is no further one", e.Node, e.Limit.UTC().Format(time.RFC3339Nano), when)
	if e.Waited > 0 {
		text += fmt.Sprintf(" after waiting %s", e.Waited)
	}
	if e.Context != nil {
		text += ": " + e.Context.Error()
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": it was asked for, retry"
}

// Unwrap returns why the lease has no further grant, and the context's error.
func (e *GrantError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Err, e.Context} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Is reports whether target is [ErrNotGranted].
func (e *GrantError) Is(target error) bool { return target == ErrNotGranted }

// pass sees to it that slots of t after last can be taken, as far as the lease
// grants them. That may take waiting. The caller looks again, whatever came of it.
func (c *call) pass(g *Generator, t *tenure, last uint64) error {
	limit := t.limit.Load()
	if last < limit {
		t.open(limit)
		g.lease.Need()
		return nil
	}
	news := g.news.wait()
	g.lease.Need()
	if t.next.Load() != nil {
		g.succeed(t) // or this caller would go round until another did
		return nil
	}
	if t.limit.Load() > limit {
		return nil
	}
	patience := strategies.WaitLimit(g.strategy)
	if _, ok := c.ctx.Deadline(); ok {
		patience = math.MaxInt64
	}
	if c.waited >= patience || errors.Is(g.lease.Err(), ErrLost) {
		return c.notGranted(g, t, limit, nil)
	}
	c.waitFor(g, news, min(patience-c.waited, coarseWait))
	if err := c.ctx.Err(); err != nil {
		return c.notGranted(g, t, limit, errorOf(c.ctx))
	}
	return nil
}

// waitFor waits until news is closed, for d at most.
func (c *call) waitFor(g *Generator, news <-chan struct{}, d time.Duration) {
	if c.began.IsZero() {
		c.began, c.before = time.Now(), c.waited
	}
	c.release(g) // others may have less to wait for
	after := g.after
	if after == nil {
		after = time.After
	}
	begin, over := g.elapsed(), false
	select {
	case <-after(d):
		over = true
	case <-news:
	case <-c.ctx.Done():
	case <-g.done:
	}
	if over {
		c.waited += d // in the clock's own time, whatever the machine's says
	} else {
		c.waited += min(d, g.elapsed()-begin)
	}
	if g.after == nil {
		c.waited = c.before + time.Since(c.began)
	}
}

// errorOf returns the error of a context that has ended, with its cause.
func errorOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (c *call) notGranted(g *Generator, t *tenure, limit uint64, ended error) error {
	end, _ := g.layout.TickTime(limit>>g.seqBits + 1)
	return &GrantError{
		Node: t.node, Limit: end, Past: -g.leadOf(limit>>g.seqBits+1, g.now()),
		Waited: c.waited, Err: g.lease.Err(), Context: ended,
	}
}
