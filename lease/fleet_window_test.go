package lease_test

import (
	"context"

	"github.com/tickflake/tickflake/internal/protocol"
)

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored() {
	if p.closing || p.gen == nil {
		return
	}
	f := p.f
	f.restores++
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

// decides is the decision of the keeper's rounds. It is a place at which others come first.
func (p *process) decides(s protocol.State, r protocol.Read) protocol.Decision {
	t := p.f.current()
	t.Hiccup()
	var d protocol.Decision
	if m := p.f.mutant; m != nil && m.decide != nil {
		d = m.decide(p, s, r)
	} else {
		d = protocol.Decide(s, r)
	}
	if s.Held != nil && r.Held != nil && !r.Held.Damaged && r.Held.Record.Limit < min(s.Held.Limit, p.owned[s.Held.Node]) && d.Kind != protocol.WentBack && d.Kind != protocol.Released {
		p.f.Fail("went back unnoticed", "%s was granted node %d up to %s, reads a limit of %s, and decides %d",
			p.Name, s.Held.Node, p.f.tickText(p.owned[s.Held.Node]), p.f.tickText(r.Held.Record.Limit), d.Kind)
	}
	if d.Kind == protocol.WentBack && p.f.Rewinds == 0 {
		p.f.Fail("went back for no reason", "%s, of node %d", p.Name, d.Node)
	}
	if d.Kind == protocol.WentBack {
		p.f.wentBack++
		p.notices, p.lost = max(p.notices, p.owned[d.Node]), p.f.Now
	}
	t.Hiccup()
	return d
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
			if used.To == 0 {
				p.noticed = p.notices
			} else {
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
