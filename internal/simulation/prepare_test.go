//go:build simulate

package simulation

import (
	"iter"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// prepare makes the clock, the generator and the callers.
func (s *sim) prepare() error {
	s.Callers = max(s.Callers, 1)
	if s.Tick == 0 {
		s.Tick = time.Millisecond
	}
	if s.TimeBits == 0 {
		s.TimeBits = 41
	}
	if s.Strategy == nil {
		s.Strategy = strategies.Default()
	}
	s.clock = clocktest.NewVirtual(epoch.Add(s.Start))
	s.reader = s.newReader()
	s.layout = snowflake.Layout{Epoch: epoch, Tick: s.Tick, TimeBits: s.TimeBits, NodeBits: nodeBits, SequenceBits: s.SequenceBits, Order: s.Order}
	s.node = 1
	if s.Nodeless {
		s.layout.NodeBits, s.node = 0, 0
	}
	if err := s.layout.ValidateAt(s.clock.Wall()); err != nil {
		return err
	}
	if err := strategies.Validate(s.Strategy); err != nil {
		return err
	}
	s.prepareChecks()
	if err := s.prepareGenerator(); err != nil {
		return err
	}

	s.started = make([]bool, len(s.Ops))
	shares := make([][]int, s.Callers)
	turn, last, calls := 0, -1, 0
	for i, op := range s.Ops {
		if op.fault() {
			s.events = append(s.events, event{op, i, last})
			continue
		}
		if op.keeper() {
			s.errands = append(s.errands, event{op, i, last})
			continue
		}
		shares[turn] = append(shares[turn], i)
		turn, last = (turn+1)%s.Callers, i
		if op.Kind < Close && op.Kind != Batch && op.Kind != Count {
			calls += op.N - 1
		}
		calls++
		if op.Kind == Contexts {
			s.events = append(s.events, event{Op{Kind: cancel, N: i}, i, i})
		}
	}
	for i := range s.Callers {
		c := &caller{sim: s, id: i, ops: shares[i]}
		c.resume, c.stop = iter.Pull(c.run)
		s.callers = append(s.callers, c)
	}
	if s.ticks != nil || s.numbers != nil {
		s.keeper = &caller{sim: s, id: s.Callers, op: -1}
		s.keeper.resume, s.keeper.stop = iter.Pull(s.keeper.keep)
		s.callers = append(s.callers, s.keeper)
	}
	s.urgency = s.rng.Perm(len(s.callers) + 1)
	if s.Schedule == Priorities {
		for range s.Changes {
			s.changes = append(s.changes, s.rng.IntN(stepsPerCall*max(calls, 1)))
		}
	}
	return nil
}

// prepareGenerator makes the generator, with the lease if there is one, or the Core.
func (s *sim) prepareGenerator() error {
	if s.Core != nil {
		s.broken = s.Core(Env{Clock: s.reader, Layout: s.layout, Node: s.node})
		return nil
	}
	if s.Counted {
		s.numbers = newNumberKeeper(s)
		return nil
	}
	opts := []generator.Option{
		generator.WithLayout(s.layout), generator.WithNode(s.node), generator.WithClock(s.reader),
		generator.WithStrategy(s.Strategy), generator.WithSequenceStart(s.Sequence),
	}
	if s.Lease {
		s.ticks = &tickKeeper{sim: s}
		s.ticks.prepare()
		s.first = max(s.first, s.slot(s.ticks.held.From))
		opts = append(opts, generator.WithWindow(s.ticks.window))
	}
	s.outside.granting = &window.Range{Node: s.node, To: s.lastTick + 1}
	gen, err := generator.New(opts...)
	s.outside.granting = nil
	if err != nil {
		return err
	}
	s.gen = gen
	if s.present.free != s.first {
		s.fail("before the start", "the window begins with slot %#x, not %#x", s.present.free, s.first)
	}
	s.present.begin = s.first
	return nil
}
