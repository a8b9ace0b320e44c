package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"
)

// granted reports whether an ID may have a node number and tick.
func (l *lease) granted(node int64, tick uint64) bool {
	return slices.ContainsFunc(l.all, func(g core.Grant) bool {
		return g.Node == node && g.Floor <= tick && tick < g.Limit
	})
}

// wanted is the first tick that a caller could have been given by what it saw.
func (s *sim) wanted(l look) uint64 { return max(s.tickOf(l.reading), l.free>>s.SequenceBits) }

// usedUp reports whether all that was granted, as far as a caller saw, is used up or
// has passed, by what it saw before.
func (s *sim) usedUp(l look, asking asking) bool {
	return asking.asked && asking.looked && l.free < sealed && s.wanted(l) > asking.limit>>s.SequenceBits
}

// checkGrantWait checks a wait for a grant that begins.
func (c *caller) checkGrantWait(d time.Duration) {
	s, asking := c.sim, c.call.asking
	if s.lease == nil || len(c.call.looks) == 0 || !s.usedUp(c.call.looks[len(c.call.looks)-1], asking) {
		s.fail("wait", "for a grant, though there is one: %+v", asking)
		return
	}
	if s.lease.lost {
		s.fail("wait", "for a grant, though the lease is lost")
	}
	patience := s.grantPatience
	if c.ctx != nil && c.ctx.deadline {
		patience = math.MaxInt64
	}
	if d <= 0 || d > patience-c.call.waited || d > 100*time.Millisecond {
		s.fail("stall", "a call waits for %s for a grant after %s, and should wait %s at most, with looks at the clock", d, c.call.waited, patience)
	}
	// What has been granted meanwhile wakes it, unless it was told before.
	t := s.tenures[asking.tenure-1]
	moved := s.present > uint64(asking.tenure)
	if !c.told() && !c.cut() && !s.granting() && (moved || t.limit > asking.limit) {
		s.fail("wait", "for a grant that nobody will tell of: there is one up to %#x of tenure %d, moved: %t", t.limit, asking.tenure, moved)
	}
}

// granting reports whether a grant is being passed on, or the end.
func (s *sim) granting() bool {
	return slices.ContainsFunc(s.callers, func(c *caller) bool { return c.granting != nil || c.ending })
}

// checkGrantError checks the report that nothing is granted any more.
func (c *caller) checkGrantError(e *core.GrantError) {
	s, call := c.sim, &c.call
	n := len(call.looks)
	if s.lease == nil || n < 2 || !s.usedUp(call.looks[n-2], call.asked) {
		s.fail("grant error", "there is a grant: %v; asked: %+v", e, call.asked)
		return
	}
	end := call.asked.limit>>s.SequenceBits + 1
	limit := epoch.Add(time.Duration(end) * s.Tick)
	node, past := s.tenures[call.asked.tenure-1].node, -s.leadOf(end, call.looks[n-1].reading)
	if e.Node != node || !e.Limit.Equal(limit) || e.Past != past || e.Waited != call.waited || e.Err != call.refused {
		s.fail("grant error", "%+v, but node %d ended at %s, %s ago, and the wait was %s", *e, node, limit, past, call.waited)
	}
	if !errors.Is(e, core.ErrNotGranted) || e.Err != nil && !errors.Is(e, errRefused) {
		s.fail("grant error", "is not what it says: %v", e)
	}
	switch waits := c.ctx != nil && c.ctx.deadline; {
	case e.Context != nil:
		if c.ctx == nil || c.ctx.err == nil || !errors.Is(e, context.Canceled) {
			s.fail("grant error", "the context has not ended: %v", e)
		}
	case errors.Is(call.refused, core.ErrLost): // and nothing to wait for
	case waits || call.waited < s.grantPatience:
		s.fail("grant error", "after a wait of %s, with a deadline: %t: %v", call.waited, waits, e)
	}
}

// checkEnd checks the tick with which the generator is said to have ended.
func (s *sim) checkEnd(end uint64) {
	s.lease.reports++
	if s.lease.reports > 1 || !s.sealed || end != s.end || int64(end) <= s.latest {
		s.fail("end", "report %d of the end says tick %d; closed: %t with %d; an ID of tick %d was returned",
			s.lease.reports, end, s.sealed, s.end, s.latest)
	}
}

// checkLease checks what can be told of a lease at the end of a run only.
func (s *sim) checkLease() {
	l, t := s.lease, s.tenures[s.present-1]
	if s.closed != (l.reports == 1) {
		s.fail("end", "%d reports of the end; closed: %t", l.reports, s.closed)
	}
	if node := s.gen.Node(); node != t.node || !s.closed && node != l.held.Node {
		s.fail("node", "%d is said to be held, but it is %d, and %d was granted", node, t.node, l.held.Node)
	}
	if t.used && l.renewed && l.needs == 0 && (t.free-1)>>s.SequenceBits >= max(l.held.Renew, 1) {
		s.fail("not asked", "%#x was issued, but the lease was not asked for more than %+v", t.free-1, l.held)
	}
}
