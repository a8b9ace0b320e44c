package lease_test

import (
	"context"

	"github.com/tickflake/tickflake/internal/protocol"
)

// restore is what a process does that was told that its memory was restored.
func (p *process) restore() {
	if p.closing || p.gen == nil {
		return
	}
	f := p.f
	f.restores++
	f.spawn(p, "restored", func(t *thread) {
		t.hiccup()
		p.k.Distrust()
		t.hiccup()
		p.lock(t)
		defer p.unlock()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		err := p.k.Restored(ctx)
		if f.trace != nil {
			t.tracef("was restored: %v", err)
		}
	})
}

// decides is the decision of the keeper's rounds. It is a place at which others come first.
func (p *process) decides(s protocol.State, r protocol.Read) protocol.Decision {
	t := p.f.current
	t.hiccup()
	var d protocol.Decision
	if m := p.f.mutant; m != nil && m.decide != nil {
		d = m.decide(p, s, r)
	} else {
		d = protocol.Decide(s, r)
	}
	if s.Held != nil && r.Held != nil && !r.Held.Damaged && r.Held.Record.Limit < min(s.Held.Limit, p.owned[s.Held.Node]) && d.Kind != protocol.WentBack && d.Kind != protocol.Released {
		p.f.fail("went back unnoticed", "%s was granted node %d up to %s, reads a limit of %s, and decides %d",
			p.name, s.Held.Node, p.f.tickText(p.owned[s.Held.Node]), p.f.tickText(r.Held.Record.Limit), d.Kind)
	}
	if d.Kind == protocol.WentBack && p.f.rewinds == 0 {
		p.f.fail("went back for no reason", "%s, of node %d", p.name, d.Node)
	}
	if d.Kind == protocol.WentBack {
		p.f.wentBack++
		p.notices, p.lost = max(p.notices, p.owned[d.Node]), p.f.now
	}
	t.hiccup()
	return d
}

// looks is called after each step of one of p's threads. It sees what became of the window,
// and wakes the threads that wait for that.
func (p *process) looks() {
	k := p.k
	if k == nil || p.dead {
		return
	}
	if len(k.Window().More()) > 0 && p.loop != nil && p.loop.asleep {
		p.loop.cutShort()
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
			if t.calling && t.asleep && t.isChanged() {
				t.cutShort()
			}
		}
	}
}
