//go:build simulate

package simulation

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/strategies"
)

// The situation that a strategy got follows from the values that the caller saw,
// and the strategy can decide again, because it is pure. So every wait,
// borrow and rejection is compared with the strategy to the nanosecond.

// mayIssue reports whether a slot of tick may be issued by the values that a caller saw.
func (s *sim) mayIssue(l look, tick uint64) bool {
	if l.reading >= s.lifetime {
		return false
	}
	if l.reading >= 0 && tick <= s.tickOf(l.reading)+s.allowed {
		return true
	}
	sit, ok := s.situation(l)
	return ok && l.free>>s.SequenceBits == tick && s.Strategy.Decide(sit).Action == strategies.ActionBorrow
}

// situation is the situation that a strategy must get by the values that a caller saw. It
// reports false if there is nothing to decide, since a slot is free.
func (s *sim) situation(l look) (strategies.Situation, bool) {
	tick, freeTick := s.tickOf(l.reading), l.free>>s.SequenceBits
	if l.reading >= 0 && freeTick <= tick+s.allowed || l.free >= sealed {
		return strategies.Situation{}, false
	}
	sit := strategies.Situation{Cause: strategies.Behind, Lead: s.leadOf(freeTick, l.reading), Waited: l.waited}
	if l.reading >= 0 && l.free != l.begin && (l.free-1)>>s.SequenceBits == tick {
		sit.Cause = strategies.Exhausted
	}
	return sit, true
}

// decided returns the last situation that the strategy must have got, and its decision.
func (c *caller) decided() (strategies.Situation, strategies.Decision, bool) {
	if len(c.call.looks) == 0 || !c.call.seenFree {
		return strategies.Situation{}, strategies.Decision{}, false
	}
	look := c.call.looks[len(c.call.looks)-1]
	sit, ok := c.sim.situation(look)
	if !ok || c.sim.usedUp(look) {
		return sit, strategies.Decision{}, false // the strategy is not asked about slots that are not granted
	}
	c.sim.leadFloor = max(c.sim.leadFloor, sit.Lead)
	return sit, c.sim.Strategy.Decide(sit), true
}

// checkWait checks a wait that begins.
func (c *caller) checkWait(d time.Duration) {
	s := c.sim
	c.call.pending = true
	if c.call.asked {
		c.checkGrantWait(d)
		return
	}
	sit, decision, ok := c.decided()
	want := decision.Wait
	if want <= 0 {
		want = sit.Lead
	}
	if s.gen != nil && (!ok || decision.Action != strategies.ActionWait || d != want) {
		s.fail("wait", "for %s, but the strategy says %s %s of %+v", d, decision.Action, want, sit)
	}
	if !c.told() && !c.cut() && !s.granting() && c.call.from != s.present {
		s.fail("wait", "while span %d is present and %d was, with no channel to tell of it", s.present.number, c.call.from.number)
	}
	if waited := c.call.waited - c.call.ungranted; d > s.patience-waited {
		s.fail("stall", "a call waits for %s after %s, but %s waits %s at most", d, waited, s.strategyText(), s.patience)
	}
}

// noteLead notes how far the slot that the caller has reserved, or would have to get,
// is ahead of a reading.
func (c *caller) noteLead(reading int64) {
	s := c.sim
	if c.call.reserved > 0 {
		s.leadCeiling = max(s.leadCeiling, s.leadOf((c.call.reserved-1)>>s.SequenceBits, reading))
	}
	if sit, ok := s.situation(look{reading: reading, free: c.call.free, begin: c.call.begin}); ok {
		s.leadCeiling = max(s.leadCeiling, sit.Lead)
	}
}

// patience is the longest that one call waits for slots: for strategies of package
// strategies, the longest lead that they do not reject, if they wait for it.
// Other strategies are checked only by their decisions.
func patience(s strategies.Strategy) time.Duration {
	if _, ok := s.(strategies.Func); ok {
		return math.MaxInt64
	}
	var longest time.Duration
	for _, cause := range []strategies.Cause{strategies.Exhausted, strategies.Behind} {
		var accepted time.Duration
		for bit := time.Duration(1) << 62; bit > 0; bit >>= 1 {
			if s.Decide(strategies.Situation{Cause: cause, Lead: accepted + bit}).Action != strategies.ActionReject {
				accepted += bit
			}
		}
		if s.Decide(strategies.Situation{Cause: cause, Lead: accepted}).Action == strategies.ActionWait {
			longest = max(longest, accepted)
		}
	}
	return longest
}

// checkError checks that an error has a documented type, and is true.
func (c *caller) checkError(err error) {
	s, call := c.sim, &c.call
	var lead *generator.LeadError
	var grant *generator.GrantError
	switch {
	case errors.As(err, &grant):
		c.checkGrantError(grant)
	case errors.As(err, &lead):
		s.rejections++
		sit, decision, ok := c.decided()
		want := generator.LeadError{Cause: sit.Cause, Lead: sit.Lead, Limit: decision.Limit, Waited: sit.Waited}
		accepted := decision.Action == strategies.ActionBorrow || decision.Action == strategies.ActionWait
		if lead.Lead <= 0 || s.gen != nil && (!ok || accepted || *lead != want) {
			s.fail("rejection", "%+v, but the strategy says %s of %+v", *lead, decision.Action, sit)
		}
	case errors.Is(err, context.Canceled):
		if c.ctx == nil || c.ctx.err == nil {
			s.fail("error", "the context has not ended: %v", err)
		}
	case errors.Is(err, lease.ErrEndOfTime):
		last := look{}
		if len(call.looks) > 0 {
			last = call.looks[len(call.looks)-1]
		}
		if last.reading < s.lifetime && last.free <= s.lastTick<<s.SequenceBits|(1<<s.SequenceBits-1) || last.free >= sealed {
			s.fail("error", "there is time left at %s: %v", time.Duration(last.reading), err)
		}
	case errors.Is(err, generator.ErrClosed):
		if !s.sealed {
			s.fail("error", "the generator is not closed: %v", err)
		}
	default:
		s.fail("error", "of a type that was not promised: %v", err)
	}
}
