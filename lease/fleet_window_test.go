package lease_test

import (
	"context"
	"slices"

	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
)

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored() {
	if p.closing || p.gen == nil {
		return
	}
	f := p.f
	f.Restores++
	p.spawn("restored", func(t *thread) {
		t.Hiccup()
		p.k.Distrust()
		t.Hiccup()
		p.lock(t)
		defer p.unlock()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		err := p.k.Restored(ctx)
		if f.Trace != nil {
			t.Tracef("was restored: %v", err)
		}
	})
}

// hooked is what p's keeper runs: the machine, or a mutant of it. Each of its steps is a place at
// which others come first.
type hooked struct {
	p *process
	m *grant.Machine
}

func (p *process) protocol(m *grant.Machine) lease.Protocol { return hooked{p, m} }

func (h hooked) Next(in grant.Input) grant.Op {
	h.p.f.current().Hiccup()
	op := h.m.Next(in)
	if mutant := h.p.f.mutant; mutant != nil && mutant.next != nil {
		mutant.next(h.p, in, &op)
	}
	return op
}

func (h hooked) Done(in grant.Input, op grant.Op, r grant.Result) []grant.Event {
	p, held := h.p, h.m.Held()
	back := op.Why == grant.Doubt && r.Status == grant.OK && r.Cell.Record.Limit < min(held.Limit, p.owned[held.Node]) &&
		!slices.Contains(held.Pending, r.Cell.Record.Write) && !in.Restored
	if mutant := p.f.mutant; mutant != nil && mutant.done != nil {
		mutant.done(h.p, in, &op, &r)
	}
	events := h.m.Done(in, op, r)
	for _, e := range events {
		switch {
		case e.Kind == grant.Suspected && p.f.Rewinds == 0 && p.f.PStale == 0:
			p.f.Fail("suspected for no reason", "%s, of node %d", p.Name, e.Range.Node)
		case e.Kind == grant.WentBack && p.f.Rewinds == 0:
			p.f.Fail("went back for no reason", "%s, of node %d", p.Name, e.Range.Node)
		case e.Kind == grant.WentBack:
			p.f.WentBack++
			p.noticed, p.lost = max(p.noticed, p.owned[e.Range.Node]), p.f.Now
		case e.Kind == grant.Trusted:
			p.f.Trusted++
		}
		back = back && e.Kind != grant.Suspected && e.Kind != grant.WentBack
	}
	if back {
		p.f.Fail("went back unnoticed", "%s was granted node %d up to %s, and reads a limit of %s",
			p.Name, held.Node, p.f.tickText(p.owned[held.Node]), p.f.tickText(r.Cell.Record.Limit))
	}
	p.f.current().Hiccup()
	return events
}

func (h hooked) Grant() window.Range {
	g := h.m.Grant()
	if mutant := h.p.f.mutant; mutant != nil && mutant.unlimited && g.To > 0 {
		g.To = h.m.End
	}
	return g
}

// Looks is called after each step of one of p's threads. It sees what became of the window,
// and wakes the threads that wait for that.
func (p *process) Looks() {
	k := p.k
	if k == nil || p.Dead {
		return
	}
	if len(k.Window().More()) > 0 && p.loop != nil && p.loop.Asleep() {
		p.loop.CutShort()
	}
	if now := k.Window().Changed(); now != p.changed {
		p.changed = now
		if used := k.Used(); used != p.used {
			p.used, p.limit = used, used.To
			if used.To > 0 {
				p.owned[used.Node] = max(p.owned[used.Node], used.To)
				p.f.gets(p, used)
			}
		}
		p.sealed = k.Window().Front().Sealed
		for _, t := range p.threads {
			if t.calling && t.Asleep() && t.isChanged() {
				t.CutShort()
			}
		}
	}
}
