//go:build simulate

package simulation

import (
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/window"
	protocol "github.com/tickflake/tickflake/lease"
)

// errRefused is the error of a simulated lease that grants nothing at the moment.
var errRefused = errors.New("refused")

// lease simulates the keeper: it puts grants into the window at random. No other
// process has the same grants.
type lease struct {
	sim    *sim
	window *window.Ticks
	party  *caller // does the keeper's work
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
func (l *lease) prepare() {
	s := l.sim
	l.window = window.NewTicks(uint8(s.SequenceBits), s.lastTick+1)
	now := s.tickOf(int64(s.Start))
	floor := now + uint64(s.rng.IntN(4)) - min(now, uint64(s.rng.IntN(4)))
	l.give(&s.outside, window.Range{Node: s.node, From: floor, To: max(floor, now) + l.some()})
}

// some is the length of a grant in ticks.
func (l *lease) some() uint64 { return 1 + uint64(l.sim.rng.IntN(l.sim.Term)) }

// more is the soft limit of a grant.
func (l *lease) more(g window.Range) uint64 {
	switch l.sim.rng.IntN(8) {
	case 0:
		return g.From - min(g.From, 1) // as early as can be
	case 1:
		return g.To + 2 // the keeper is asked only when all is used up
	}
	return g.To - min(g.To, uint64(l.sim.rng.IntN(4)))
}

// answer grants more to a generator that asked, or refuses.
func (l *lease) answer(c *caller) {
	s := l.sim
	l.asked = true
	refuse := s.rng.IntN(4) == 0
	l.lost = l.lost || refuse && s.rng.IntN(32) == 0
	if s.trace() {
		s.tracef("%s: was asked for a grant, which is refused: %t, for good: %t", c, refuse, l.lost)
	}
	if l.lost {
		l.fail(c, fmt.Errorf("%w: %w", errRefused, protocol.ErrLost))
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
func (l *lease) fail(c *caller, err error) {
	l.err, c.failing = err, err
	tells := l.sim.tells
	l.window.Fail(err)
	l.checkTold(tells, "Fail")
	for _, c := range l.sim.callers {
		if c.state == asleep && c.call.asked && c.call.refused != err && !c.told() && !c.cut() {
			l.sim.fail("not told", "%s waits for a grant and has seen %v, but the reason is %v", c, c.call.refused, err)
		}
	}
}

// extend grants more ticks of the node number that is held. The new grant begins at or
// before the end of the present one.
func (l *lease) extend(c *caller, ticks uint64) {
	from, to := l.held.From, l.held.To
	l.give(c, window.Range{Node: l.held.Node, From: to - min(to-min(from, to), uint64(l.sim.rng.IntN(3))), To: to + ticks})
}

// move grants a node number from the first unused tick plus after on.
func (l *lease) move(c *caller, node int64, after int64) {
	from := uint64(max(0, int64(l.used())+after))
	to := from + l.some()
	if now := l.sim.tickOf(int64(l.sim.clock.Wall().Sub(epoch))); now > to && l.sim.rng.IntN(4) != 0 {
		to = now + l.some()
	}
	l.give(c, window.Range{Node: node, From: from, To: to})
}

// give puts a grant in and checks that the window took it.
func (l *lease) give(c *caller, g window.Range) {
	s := l.sim
	if l.lost {
		return
	}
	more := l.more(g)
	l.held, l.all = g, append(l.all, g)
	l.grants++
	if s.trace() {
		s.tracef("%s: grants node %d from tick %d to %d, and is to be asked from %d on", c, g.Node, g.From, g.To, more)
	}
	before, tells := s.present, s.tells
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
	l.checkTold(tells, "Grant")
}

// revoke takes back the rest of the grant.
func (l *lease) revoke(c *caller) {
	s, tells := l.sim, l.sim.tells
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
	l.checkTold(tells, "Revoke")
}

func (l *lease) checkTold(before int, what string) {
	if l.sim.tells == before {
		l.sim.fail("not told", "%s closed no channel", what)
	}
}

// used asks for the first unused tick.
func (l *lease) used() uint64 {
	s := l.sim
	latest := s.latest
	tick := l.window.Used()
	if int64(tick) <= latest || s.closed && tick != s.end {
		s.fail("used ticks", "the first that was not is said to be %d, but an ID of %d was returned; closed: %t at %d", tick, latest, s.closed, s.end)
	}
	return tick
}

// seal closes the generator from the lease's side.
func (l *lease) seal(c *caller) {
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

// lend is the coroutine of the keeper.
func (c *caller) lend(yield func(struct{}) bool) {
	c.yield = yield
	defer c.guard()
	s, l := c.sim, c.sim.lease
	for {
		c.op, c.idle = -1, true
		s.await(func() bool { return len(l.window.More()) > 0 || s.due(s.errands[s.errand:]) })
		c.idle = false
		if len(l.window.More()) > 0 {
			<-l.window.More()
			l.answer(c)
			continue
		}
		op := s.errands[s.errand]
		s.errand++
		c.op = op.index
		switch op.op.Kind {
		case Extend:
			l.extend(c, uint64(op.op.N))
		case Move:
			l.move(c, int64(op.op.N), int64(op.op.D/s.Tick))
		case Revoke:
			l.revoke(c)
		}
	}
}
