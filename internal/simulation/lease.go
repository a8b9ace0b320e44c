package simulation

import (
	"context"
	"errors"
	"fmt"

	core "github.com/tickflake/tickflake/internal/simulation/core/generator"
	"github.com/tickflake/tickflake/internal/simulation/seam"
)

// errRefused is why a simulated lease grants nothing at the moment.
var errRefused = errors.New("refused")

// lease grants at random what a generator needs. What it grants is nobody else's.
type lease struct {
	sim    *sim
	holder core.Holder
	party  *caller // does what is not done within calls
	held   core.Grant
	all    []core.Grant
	busy   bool // a Grant is under way, of which there is one at a time
	needed bool
	lost   bool // grants nothing any more
	err    error

	answers uint64 // so far

	// Since the grant that is held: how often more was asked for, and whether the
	// generator heard in time from where on it must ask.
	needs   int
	renewed bool
	reports int // of the end
}

func (l *lease) Layout() core.Layout { return l.sim.layout }
func (l *lease) Clock() core.Clock   { return l.sim.reader }

// Bind grants what begins at about the present tick.
func (l *lease) Bind(h core.Holder) (core.Grant, error) {
	s := l.sim
	l.holder = h
	now := s.tickOf(int64(s.Start))
	floor := now + uint64(s.rng.IntN(4)) - min(now, uint64(s.rng.IntN(4)))
	return l.grant(s.node, floor, max(floor, now)+l.some()), nil
}

// some is the length of a grant in ticks.
func (l *lease) some() uint64 { return 1 + uint64(l.sim.rng.IntN(l.sim.Term)) }

// grant notes what is granted from now on.
func (l *lease) grant(node int64, floor, limit uint64) core.Grant {
	renew := limit - min(limit, uint64(l.sim.rng.IntN(4)))
	switch l.sim.rng.IntN(8) {
	case 0:
		renew = floor - min(floor, 1) // as early as can be
	case 1:
		renew = limit + 2 // no word before all is used up
	}
	l.held = core.Grant{Node: node, Floor: floor, Limit: limit, Renew: renew}
	l.all = append(l.all, l.held)
	return l.held
}

// Need grants more, has the party do so, or does not.
func (l *lease) Need() {
	s, c := l.sim, l.sim.current
	if c == nil || c.dead {
		return
	}
	if c.granting != nil || c == l.party {
		s.fail("need", "a lease is asked for a grant by its own")
	}
	l.needs++
	c.call.asking.asked = true
	refuse := s.rng.IntN(4) == 0
	l.lost = l.lost || refuse && s.rng.IntN(32) == 0
	if s.trace() {
		s.tracef("%s: needs a grant, which is refused: %t, for good: %t", c, refuse, l.lost)
	}
	l.err = nil
	switch {
	case l.lost:
		l.err = fmt.Errorf("%w: %w", errRefused, core.ErrLost)
	case refuse:
		l.err = errRefused
	case s.Lease == Inline && !l.busy:
		l.answer(c)
	default:
		l.needed = true
	}
}

// Err is why Need did nothing.
func (l *lease) Err() error {
	if c := l.sim.current; c != nil {
		c.call.refused = l.err
	}
	return l.err
}

// Release is told of the end by Close.
func (l *lease) Release(_ context.Context, end uint64) error {
	l.sim.checkEnd(end)
	return nil
}

// answer grants what was needed.
func (l *lease) answer(c *caller) {
	s := l.sim
	l.needed = false
	l.answers++ // by which it becomes more generous, or the clock might stay ahead for good
	switch s.rng.IntN(8) {
	case 0, 1:
		l.move(c, int64(s.rng.IntN(maxNode+1)), int64(s.rng.IntN(12))-4)
	case 2:
		l.extend(c, l.some())
	default: // from where all is served
		now := max(s.tickOf(int64(s.clock.Wall().Sub(epoch))), l.tick(c))
		l.extend(c, max(now, l.held.Limit)-l.held.Limit+l.some()+l.answers)
	}
}

// extend grants more ticks of what is held. Where the new grant begins says no more
// than that it is the same.
func (l *lease) extend(c *caller, ticks uint64) {
	l.give(c, func() core.Grant {
		floor, limit := l.held.Floor, l.held.Limit
		begin := limit - min(limit-min(floor, limit), uint64(l.sim.rng.IntN(3)))
		return l.grant(l.held.Node, begin, limit+ticks)
	})
}

// move grants a node number from so many ticks after the first unused one on, or
// before.
func (l *lease) move(c *caller, node int64, after int64) {
	floor := uint64(max(0, int64(l.tick(c))+after))
	limit := floor + l.some()
	if now := l.sim.tickOf(int64(l.sim.clock.Wall().Sub(epoch))); now > limit && l.sim.rng.IntN(4) != 0 {
		limit = now + l.some()
	}
	l.give(c, func() core.Grant { return l.grant(node, floor, limit) })
}

// give passes on a grant, unless another is being passed on, and checks that it has
// come.
func (l *lease) give(c *caller, grant func() core.Grant) {
	s := l.sim
	if l.busy || l.lost {
		return
	}
	l.busy = true
	g := grant()
	l.needs = 0
	open := s.tenures[s.present-1].last
	before, tells := s.present, s.tells
	if s.trace() {
		s.tracef("%s: grants node %d from tick %d to %d, renewed from %d on", c, g.Node, g.Floor, g.Limit, g.Renew)
	}
	c.granting = &g
	l.holder.Grant(g)
	node := s.gen.Node()
	c.granting = nil
	t := s.tenures[s.present-1]
	l.renewed = s.present > before || open < g.Renew<<s.SequenceBits
	l.busy = false
	if s.sealed {
		return // perhaps before
	}
	if node != g.Node || t.node != g.Node || t.limit < min(g.Limit, s.lastTick+1)<<s.SequenceBits-1 {
		s.fail("grant not taken", "%+v, but the generator holds node %d up to slot %#x", g, node, t.limit)
	}
	if s.tells == tells {
		s.fail("grant not told", "%+v", g)
	}
}

// tick asks for the first unused tick.
func (l *lease) tick(c *caller) uint64 {
	s := l.sim
	latest := s.latest
	c.granting = &l.held
	tick := l.holder.Tick()
	c.granting = nil
	if int64(tick) <= latest || s.closed && tick != s.end {
		s.fail("used ticks", "the first that was not is said to be %d, but an ID of %d was returned; closed: %t at %d", tick, latest, s.closed, s.end)
	}
	return tick
}

// seal closes the generator from the lease's side.
func (l *lease) seal() {
	if end, first := l.holder.Seal(); first {
		l.sim.checkEnd(end)
	}
}

// lend is the coroutine of the lease's own party.
func (c *caller) lend(yield func(struct{}) bool) {
	c.yield = yield
	defer c.guard()
	s, l := c.sim, c.sim.lease
	for {
		c.op, c.idle = -1, true
		s.Await(func() bool { return !l.busy && (l.needed || s.due(l.errands())) })
		c.idle = false
		if l.needed {
			l.answer(c)
			continue
		}
		op := s.errands[s.errand]
		s.errand++
		c.op = op.index
		if op.op.Kind == Extend {
			l.extend(c, uint64(op.op.N))
		} else {
			l.move(c, int64(op.op.N), int64(op.op.D/s.Tick))
		}
	}
}

// errands are those of the program's operations that the lease has not done.
func (l *lease) errands() []event { return l.sim.errands[l.sim.errand:] }

// watch has the run see the holder's lock.
func (l *lease) watch() {
	if h, ok := l.holder.(interface{ Observe(seam.Observer) }); ok {
		h.Observe(l.sim)
	}
}
