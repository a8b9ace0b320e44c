package lease

import (
	"context"

	"github.com/tickflake/tickflake/generator"
)

// simulatedLease is the keeper as the generator sees it. It adds places at which
// others come first, and keeps the threads from waiting for the real mutex.
type simulatedLease struct {
	*Keeper
	p *process
}

func (l simulatedLease) Bind(h generator.Holder) (generator.Grant, error) {
	p := l.p
	p.lock(p.f.current)
	defer p.unlock()
	grant, err := l.Keeper.Bind(simulatedHolder{h, p})
	if err != nil {
		return grant, err
	}
	p.holder = h
	return p.granted(grant), nil
}

func (l simulatedLease) Need() {
	p, t := l.p, l.p.f.current
	t.needing, t.grants = true, p.grants
	t.inNeed = true
	if p.local {
		l.Keeper.Need()
		p.loop.cutShort()
	} else {
		p.lock(t)
		l.Keeper.Need()
		p.unlock()
	}
	t.inNeed = false
}

func (l simulatedLease) Release(ctx context.Context, end uint64) error {
	p, t := l.p, l.p.f.current
	p.seal()
	p.cancelLoop()
	t.hiccup()
	p.lock(t)
	defer p.unlock()
	return l.Keeper.Release(ctx, end)
}

// simulatedHolder is the generator as the keeper sees it.
type simulatedHolder struct {
	generator.Holder
	p *process
}

func (h simulatedHolder) Grant(g generator.Grant) {
	t := h.p.f.current
	t.hiccup()
	h.Holder.Grant(h.p.granted(g))
	for _, other := range h.p.threads {
		if other.needing && other.asleep {
			other.cutShort()
		}
	}
	t.hiccup()
}

func (h simulatedHolder) Tick() uint64 {
	h.p.f.current.hiccup()
	return h.Holder.Tick()
}

func (h simulatedHolder) Seal() (uint64, bool) {
	if m := h.p.f.mutant; m != nil && m.unsealed {
		return 0, false
	}
	h.p.f.current.hiccup()
	end, first := h.Holder.Seal()
	h.p.seal()
	h.p.f.current.hiccup()
	return end, first
}

// granted notes what the generator gets.
func (p *process) granted(g generator.Grant) generator.Grant {
	p.grants++
	p.limit = g.Limit
	if m := p.f.mutant; m != nil && m.grant != nil {
		g = m.grant(p, g)
	}
	p.f.gets(p, g)
	return g
}
