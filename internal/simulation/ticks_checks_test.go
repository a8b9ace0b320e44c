//go:build simulate

package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	protocol "github.com/tickflake/tickflake/lease"
)

// granted reports whether an ID may have a node number and tick.
func (l *lease) granted(node int64, tick uint64) bool {
	return slices.ContainsFunc(l.all, func(g window.Range) bool {
		return g.Node == node && g.From <= tick && tick < g.To
	})
}

// wanted is the first tick that a caller could have got by the values that it saw.
func (s *sim) wanted(l look) uint64 { return max(s.tickOf(l.reading), l.free>>s.SequenceBits) }

// usedUp reports whether all that was granted, as far as a caller saw, is used up or
// has passed. A limit that was seen before free may have been extended since.
func (s *sim) usedUp(l look) bool {
	return l.limited && l.free < sealed && s.wanted(l) >= l.limit>>s.SequenceBits
}

// checkAsked checks that the keeper was asked for more before a slot was taken that is
// beyond the soft limit which it gave.
func (s *sim) checkAsked(slot uint64, t *span) {
	if l := s.lease; l != nil && t == s.present && !s.granting() && slot >= l.askFrom && !l.asked && len(l.window.More()) == 0 {
		s.fail("not asked", "for more than %+v, when slot %#x was wanted, beyond %#x", l.held, slot, l.askFrom)
	}
}

// checkGrantWait checks a wait for a grant that begins.
func (c *caller) checkGrantWait(d time.Duration) {
	s := c.sim
	if s.lease == nil || len(c.call.looks) == 0 || !s.usedUp(c.call.looks[len(c.call.looks)-1]) {
		s.fail("wait", "for a grant, though there is one: %v", c.call.looks)
		return
	}
	if errors.Is(c.call.refused, protocol.ErrLost) {
		s.fail("wait", "for a grant, though the lease is lost")
	}
	patience := s.grantPatience
	if c.ctx != nil && c.ctx.deadline {
		patience = math.MaxInt64
	}
	dry := c.dry(c.call.looks[len(c.call.looks)-1])
	if want := min(patience-dry, 100*time.Millisecond); d <= 0 || d != want {
		s.fail("stall", "a call waits for %s for a grant after %s, and should wait %s, of %s at most, with looks at the clock", d, dry, want, patience)
	}
	look := c.call.looks[len(c.call.looks)-1]
	// A change that the caller has not seen must still close its channel.
	if c.told() || c.cut() || s.granting() {
		return
	}
	if t := look.span; t != s.present || t.limit > look.limit {
		s.fail("wait", "for a grant that no channel tells of: there is one up to %#x of span %d, and span %d is present", t.limit, t.number, s.present.number)
	}
	s.checkAsked(s.slot(s.wanted(look)), s.present)
}

// dry is how long a caller has waited since it first saw the end of the grant of l.
func (c *caller) dry(l look) time.Duration {
	if end := max(l.limit, l.free); end != c.call.grantEnd {
		c.call.grantEnd, c.call.dry = end, 0
	}
	return c.call.dry
}

// granting reports whether a grant or the end is being put into the window.
func (s *sim) granting() bool {
	return slices.ContainsFunc(s.callers, func(c *caller) bool { return c.granting != nil || c.ending })
}

// checkGrantError checks the report that nothing is granted any more.
func (c *caller) checkGrantError(e *generator.GrantError) {
	s, call := c.sim, &c.call
	n := len(call.looks)
	if s.lease == nil || n < 2 || !s.usedUp(call.looks[n-2]) {
		s.fail("grant error", "there is a grant: %v; looks: %v", e, call.looks)
		return
	}
	look := call.looks[n-2]
	end := max(look.limit, look.free) >> s.SequenceBits // the latter if the rest was revoked
	limit := epoch.Add(time.Duration(end) * s.Tick)
	past := -s.leadOf(end, call.looks[n-1].reading)
	if e.Node != look.span.node || !e.Limit.Equal(limit) || e.Past != past || e.Waited != call.waited || e.Err != call.refused {
		s.fail("grant error", "%+v, but node %d ended at %s, %s ago, and the wait was %s", *e, look.span.node, limit, past, call.waited)
	}
	if !errors.Is(e, generator.ErrNotGranted) || e.Err != nil && !errors.Is(e, errRefused) {
		s.fail("grant error", "is not what it says: %v", e)
	}
	switch waits := c.ctx != nil && c.ctx.deadline; {
	case e.Context != nil:
		if c.ctx == nil || c.ctx.err == nil || !errors.Is(e, context.Canceled) {
			s.fail("grant error", "the context has not ended: %v", e)
		}
	case errors.Is(call.refused, protocol.ErrLost): // and nothing to wait for
	case waits || c.dry(look) < s.grantPatience:
		s.fail("grant error", "after a wait of %s, with a deadline: %t: %v", call.dry, waits, e)
	}
}

// checkLease checks conditions of a lease that hold only at the end of a run.
func (s *sim) checkLease() {
	l, t := s.lease, s.present
	if l.sealings > 1 || !s.closed && l.sealings > 0 {
		s.fail("end", "%d were the first to seal the window; closed: %t", l.sealings, s.closed)
	}
	if node := s.gen.Node(); node != t.node || !s.closed && node != l.held.Node {
		s.fail("node", "%d is said to be held, but it is %d, and %d was granted", node, t.node, l.held.Node)
	}
	if err := l.window.Err(); err != l.err {
		s.fail("err", "is %v, but the keeper said %v", err, l.err)
	}
}
