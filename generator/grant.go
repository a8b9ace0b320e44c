package generator

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// ErrNotGranted matches a [GrantError], by [errors.Is].
var ErrNotGranted = errors.New("no time granted")

// GrantError reports that the grant of the generator's lease is used up or expired, and
// that there is no further one. The generator issues IDs again as soon as there is a
// grant: answer 503 and try the next request, whatever the kind. Only [lease.ErrLost] and
// [lease.ErrMoved] need a restart.
type GrantError struct {
	Node   int64         // the node number that was held
	Limit  time.Time     // where the grant ended
	Past   time.Duration // from Limit to the clock's reading: below zero if IDs ran ahead of the clock
	Waited time.Duration // how long the call had waited in all, for slots and for grants
	Err    error         // why the lease has no further grant, or nil if it gave no reason
	// Context is the error of the call's context if it ended the wait, with its cause,
	// or nil.
	Context error
}

func (e *GrantError) Error() string {
	when := fmt.Sprintf("%s ago", span.Text(e.Past))
	if e.Past < 0 {
		when = fmt.Sprintf("%s ahead of the clock", span.Text(-e.Past))
	}
	text := fmt.Sprintf("grant of node %d ended at %s, %s, and there is no further one", e.Node, e.Limit.UTC().Format(time.RFC3339Nano), when)
	if e.Waited > 0 {
		text += fmt.Sprintf(" after waiting %s", e.Waited)
	}
	if e.Context != nil && (e.Err == nil || !strings.Contains(e.Err.Error(), e.Context.Error())) {
		text += ": " + e.Context.Error()
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": the generator has asked for one, retry"
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

// Is reports whether target is [ErrNotGranted], or [stores.Passing] if Err is nil. Else the kind is
// that of Err: with [stores.Refused], a call does not wait, and an operator must do what the message
// says.
func (e *GrantError) Is(target error) bool {
	return target == ErrNotGranted || target == stores.Passing && e.Err == nil
}

// awaitGrant waits for a change of the window, in which no slot from front on is
// granted. The caller looks at the window again after it. The patience is the longer wait of
// the strategy: newGenerator sets it. If the grant has another end than before, there was a
// grant that other calls used up, and the patience begins anew.
func (c *call) awaitGrant(g *Generator, front window.Front, changed <-chan struct{}) error {
	g.window.Ask() // no Take did if the clock is behind
	patience := g.patience
	if _, ok := c.ctx.Deadline(); ok {
		patience = math.MaxInt64
	}
	if end := front.End(); end != c.end {
		c.end, c.dry = end, 0
	}
	if c.dry >= patience || stores.KindOf(g.window.Err()) == stores.Refused {
		return c.notGranted(g, front, nil)
	}
	c.enter(g)
	before := c.waited
	c.pause(g, changed, min(patience-c.dry, coarseWait))
	c.ungranted += c.waited - before
	c.dry += c.waited - before
	if c.ctx.Err() != nil {
		return c.notGranted(g, front, drive.ContextError(c.ctx))
	}
	return nil
}

func (c *call) notGranted(g *Generator, front window.Front, ended error) error {
	limit := front.End() >> g.seqBits
	end, _ := g.layout.TickTime(limit)
	return &GrantError{
		Node: front.Node, Limit: end, Past: -g.leadOf(limit, g.now()),
		Waited: c.waited, Err: g.window.Err(), Context: ended,
	}
}
