//go:build simulate

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
)

// errRefused is the error of a simulated lease that grants nothing at the moment.
var errRefused = errors.New("refused")

// tickKeeper is the keeper of the window of a node number: it puts grants in at random. No
// other process has the same grants.
type tickKeeper struct {
	sim    *sim
	window *window.Ticks
	held   window.Range
	all    []window.Range
	lost   bool  // grants nothing any more
	err    error // the last one given to Fail

	grants  int    // that have begun
	answers uint64 // so far
	revoked bool   // since the last grant

	// Since the present grant began: whether more was asked for, and from which slot on
	// it must have been.
	asked    bool
	askFrom  uint64
	sealings int // calls that were told that they were the first
}

// prepare makes the window and grants ticks from about the present one on.
func (l *tickKeeper) prepare() {
	s := l.sim
	l.window = window.NewTicks(uint8(s.SequenceBits), s.lastTick+1)
	now := s.tickOf(int64(s.Start))
	floor := now + uint64(s.rng.IntN(4)) - min(now, uint64(s.rng.IntN(4)))
	l.give(&s.outside, window.Range{Node: s.node, From: floor, To: max(floor, now) + l.some()})
}

// some is the length of a grant in ticks.
func (l *tickKeeper) some() uint64 { return 1 + uint64(l.sim.rng.IntN(l.sim.Term)) }

// more is the soft limit of a grant.
func (l *tickKeeper) more(g window.Range) uint64 {
	switch l.sim.rng.IntN(8) {
	case 0:
		return g.From - min(g.From, 1) // as early as can be
	case 1:
		return g.To + 2 // the keeper is asked only when all is used up
	}
	return g.To - min(g.To, uint64(l.sim.rng.IntN(4)))
}

// answer grants more to a generator that asked, or refuses.
func (l *tickKeeper) answer(c *caller) {
	s := l.sim
	l.asked = true
	refuse := s.rng.IntN(4) == 0
	l.lost = l.lost || refuse && s.rng.IntN(32) == 0
	if s.trace() {
		s.tracef("%s: was asked for a grant, which is refused: %t, for good: %t", c, refuse, l.lost)
	}
	if l.lost {
		l.fail(c, fmt.Errorf("%w: %w", errRefused, lease.ErrLost))
		return
	}
	if refuse {
		if s.rng.IntN(2) == 0 { // else in silence
			l.fail(c, errRefused)
		}
		return
	}
	if l.err != nil && s.rng.IntN(2) == 0 {
		l.fail(c, nil)
	}
	l.answers++ // grants grow with it, or the clock might stay ahead of them forever
	switch s.rng.IntN(8) {
	case 0, 1:
		l.move(c, int64(s.rng.IntN(maxNode+1)), int64(s.rng.IntN(12))-4)
	case 2:
		l.extend(c, l.some())
	default: // up to a tick from which every caller is served
		now := max(s.tickOf(int64(s.clock.Wall().Sub(epoch))), l.used())
		l.extend(c, max(now, l.held.To)-l.held.To+l.some()+l.answers)
	}
}

// fail says why there is no grant.
func (l *tickKeeper) fail(c *caller, err error) {
	l.err, c.failing = err, err
	changed := l.window.Changed()
	l.window.Fail(err)
	l.sim.checkTold(changed, "Fail")
	for _, c := range l.sim.callers {
		if c.state == asleep && c.call.asked && c.call.refused != err && !c.told() && !c.cut() {
			l.sim.fail("not told", "%s waits for a grant and has seen %v, but the reason is %v", c, c.call.refused, err)
		}
	}
}

// extend grants more ticks of the node number that is held. The new grant begins at or
// before the end of the present one.
func (l *tickKeeper) extend(c *caller, ticks uint64) {
	from, to := l.held.From, l.held.To
	l.give(c, window.Range{Node: l.held.Node, From: to - min(to-min(from, to), uint64(l.sim.rng.IntN(3))), To: to + ticks})
}

// move grants a node number from the first unused tick plus after on.
func (l *tickKeeper) move(c *caller, node int64, after int64) {
	from := uint64(max(0, int64(l.used())+after))
	to := from + l.some()
	if now := l.sim.tickOf(int64(l.sim.clock.Wall().Sub(epoch))); now > to && l.sim.rng.IntN(4) != 0 {
		to = now + l.some()
	}
	l.give(c, window.Range{Node: node, From: from, To: to})
}

// give puts a grant in and checks that the window took it.
func (l *tickKeeper) give(c *caller, g window.Range) {
	s := l.sim
	if l.lost {
		return
	}
	more, changed := l.more(g), l.window.Changed()
	l.held, l.all = g, append(l.all, g)
	l.grants++
	if s.trace() {
		s.tracef("%s: grants node %d from tick %d to %d, and is to be asked from %d on", c, g.Node, g.From, g.To, more)
	}
	before := s.present
	extends := before.limit > 0 && before.node == g.Node && s.slot(g.From) <= before.limit
	l.asked, l.askFrom, l.revoked = false, s.slot(more), false
	if extends {
		l.askFrom = max(l.askFrom, before.limit) // a caller that asked earlier may raise the soft limit to that
		before.until = max(before.until, s.slot(g.To))
	}
	c.granting = &g
	l.window.Grant(g, more)
	node := l.window.Front().Node
	c.granting = nil
	if s.sealed {
		return // perhaps before
	}
	t := s.present
	if node != g.Node || t.node != g.Node || t.limit < s.slot(g.To) || extends != (t == before) {
		s.fail("grant not taken", "%+v, but the window holds node %d up to slot %#x; extended: %t, and should be: %t", g, node, t.limit, t == before, extends)
	}
	s.checkTold(changed, "Grant")
}

// revoke takes back the rest of the grant.
func (l *tickKeeper) revoke(c *caller) {
	s, changed := l.sim, l.window.Changed()
	c.granting = &window.Range{Node: s.present.node}
	l.asked, l.askFrom = false, 0
	if s.trace() {
		s.tracef("%s: revokes the grant", c)
	}
	l.window.Revoke()
	c.granting = nil
	if s.sealed {
		return // perhaps before
	}
	l.revoked = true
	if s.present.limit > 0 || s.present.until > 0 {
		s.fail("not revoked", "slots up to %#x can be taken", s.present.limit)
	}
	s.checkTold(changed, "Revoke")
}

// used asks for the first unused tick.
func (l *tickKeeper) used() uint64 {
	s := l.sim
	latest := s.latest
	tick := l.window.Used()
	if int64(tick) <= latest || s.closed && tick != s.end {
		s.fail("used ticks", "the first that was not is said to be %d, but an ID of %d was returned; closed: %t at %d", tick, latest, s.closed, s.end)
	}
	return tick
}

// seal closes the generator from the lease's side.
func (l *tickKeeper) seal(c *caller) {
	s := l.sim
	c.ended = false
	end, first := l.window.Seal()
	if first {
		l.sealings++
	}
	if first != c.ended || !s.sealed || end != s.end || int64(end) <= s.latest {
		s.fail("end", "said to be tick %d, first: %t; sealed: %t with %d, by this caller: %t; an ID of tick %d was returned",
			end, first, s.sealed, s.end, c.ended, s.latest)
	}
}

// granted reports whether an ID may have a node number and tick.
func (l *tickKeeper) granted(node int64, tick uint64) bool {
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
	if l := s.ticks; l != nil && t == s.present && !s.granting() && slot >= l.askFrom && !l.asked && len(l.window.More()) == 0 {
		s.fail("not asked", "for more than %+v, when slot %#x was wanted, beyond %#x", l.held, slot, l.askFrom)
	}
}

// checkGrantWait checks a wait for a grant that begins.
func (c *caller) checkGrantWait(d time.Duration) {
	s := c.sim
	if s.ticks == nil || len(c.call.looks) == 0 || !s.usedUp(c.call.looks[len(c.call.looks)-1]) {
		s.fail("wait", "for a grant, though there is one: %v", c.call.looks)
		return
	}
	if errors.Is(c.call.refused, lease.ErrLost) {
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
	if s.ticks == nil || n < 2 || !s.usedUp(call.looks[n-2]) {
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
	case errors.Is(call.refused, lease.ErrLost): // and nothing to wait for
	case waits || c.dry(look) < s.grantPatience:
		s.fail("grant error", "after a wait of %s, with a deadline: %t: %v", call.dry, waits, e)
	}
}

// checkLease checks conditions of a lease that hold only at the end of a run.
func (s *sim) checkLease() {
	l, t := s.ticks, s.present
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
