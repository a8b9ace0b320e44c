package main

import (
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/protocol"
)

// beginClaim begins a try to claim a number: it reads the claims of unknown outcome, the layout,
// and node numbers.
func (f *fleet) beginClaim(i int32, p *process, now int64) {
	if p.claim == nil {
		p.claim = &claim{}
	}
	c := p.claim
	c.rounds, c.probing, c.created = 0, false, false
	f.nextClaimed(i, p, 0, now)
}

// nextClaimed reads the next claim of unknown outcome, if there is one.
func (f *fleet) nextClaimed(i int32, p *process, which int, now int64) {
	c := p.claim
	if c.reading = which; which < len(c.pending) {
		p.seen = f.cells[c.pending[which].node]
		f.request(i, p, now, 0, readClaimed)
		return
	}
	switch {
	case p.unknown: // the claim has not landed so far
		f.endTry(i, p, now)
	case !c.probing:
		f.askLayout(i, p, now)
	default:
		f.chooseAgain(i, p, now)
	}
}

func (f *fleet) askLayout(i int32, p *process, now int64) {
	p.seen.version = 0
	if f.layout {
		p.seen.version = 1
	}
	f.request(i, p, now, 0, readLayout)
}

// endTry ends a try that failed. The next one begins anew, but for the claims of unknown outcome.
func (f *fleet) endTry(i int32, p *process, now int64) {
	p.claim.free = nil
	f.failed(i, p, now)
}

// claiming goes on with a claim when a request has ended.
func (f *fleet) claiming(i int32, p *process, now int64) {
	c := p.claim
	if !p.served {
		f.endTry(i, p, now)
		return
	}
	switch p.step {
	case readClaimed:
		q := c.pending[c.reading]
		switch {
		case p.seen.write == q.name:
			f.hold(i, p, q.node, p.seen.version, q.floor, p.seen.limit, now)
		case p.seen.version != q.version: // it can land no more
			c.pending = append(c.pending[:c.reading], c.pending[c.reading+1:]...)
			f.nextClaimed(i, p, c.reading, now)
		default:
			f.nextClaimed(i, p, c.reading+1, now)
		}
	case readLayout:
		if p.seen.version == 0 {
			back, served := f.send(p, now, 0)
			c.created = served && !f.layout
			f.layout = f.layout || served
			p.served = served
			f.next(i, back, wroteLayout)
			return
		}
		f.search(i, p, now)
	case wroteLayout:
		if !c.created { // another process was first
			f.askLayout(i, p, now)
			return
		}
		f.search(i, p, now)
	case listed:
		if c.sample {
			c.sample = false
			f.request(i, p, now, 256, listed)
			return
		}
		f.chosen(i, p, now)
	case swapped:
		f.landed(i, p, now)
	}
}

// search lists the first block.
func (f *fleet) search(i int32, p *process, now int64) {
	c := p.claim
	c.search = protocol.NewSearch(f.nodes, f.rng.Uint64())
	c.free, c.others, c.probing = nil, 0, true
	f.list(i, p, now)
	// The clock is compared with those of others: if the block has few, with a sample of all.
	c.sample = c.others < 3 && !c.created && c.search.Done < f.nodes
}

// list lists a block. The decision is made at once, since nothing changes in a list that is
// on its way.
func (f *fleet) list(i int32, p *process, now int64) {
	c := p.claim
	from, n := c.search.Block()
	back, answered := f.send(p, now, n)
	p.served = answered
	f.next(i, back, listed)
	if !answered {
		return
	}
	s := f.state(i, back)
	f.scratch = f.scratch[:0]
	for _, k := range c.free {
		f.scratch = append(f.scratch, f.asListed(k))
	}
	for node := from; node < from+n; node++ {
		if x := &f.cells[node]; x.holder > 0 && x.limit > s.Now { // Decide would refuse it
			c.others++
			continue
		}
		k := candidate{node: int32(node), version: f.cells[node].version}
		c.free = append(c.free, k)
		f.scratch = append(f.scratch, f.asListed(k))
	}
	f.decide(s, c)
}

// asListed is a candidate as it was listed. If its cell was written since, the claim fails in
// any case.
func (f *fleet) asListed(k candidate) protocol.Cell {
	r := protocol.Cell{Node: int64(k.node), Version: uint64(k.version), Taken: k.taken}
	if k.version > 0 {
		r.Record = cell.Node{Limit: f.cells[k.node].limit, Window: f.ticks}
		if f.cells[k.node].holder > 0 {
			r.Record.Holder = "another"
		}
	}
	return r
}

// decide decides by the cells in scratch.
func (f *fleet) decide(s protocol.State, c *claim) {
	c.decision = protocol.Decide(s, protocol.Read{Cells: f.scratch, Others: c.others})
	c.rank = protocol.None
	if c.decision.Kind == protocol.Claim {
		for _, k := range f.scratch {
			if k.Node == c.decision.Node {
				_, c.rank = s.Choose([]protocol.Cell{k})
			}
		}
	}
}

// chooseAgain decides by the candidates that are left.
func (f *fleet) chooseAgain(i int32, p *process, now int64) {
	c := p.claim
	f.scratch = f.scratch[:0]
	for _, k := range c.free {
		f.scratch = append(f.scratch, f.asListed(k))
	}
	f.decide(f.state(i, now), c)
	f.chosen(i, p, now)
}

// chosen lists the next block, or writes the claim.
func (f *fleet) chosen(i int32, p *process, now int64) {
	c := p.claim
	switch {
	case !c.search.Settled(c.rank):
		f.list(i, p, now)
		return
	case c.rank == protocol.None || c.rounds == rounds:
		f.endTry(i, p, now)
		return
	}
	c.rounds++
	d := c.decision
	name, _ := f.name()
	p.trips++
	back, served := f.admit(now, 0)
	landed := served && f.write(i, d, now, back)
	p.unknown = !served || lost(now, back)
	p.seen = kept{}
	if p.unknown {
		back = min(back, now+timeout)
		if len(c.pending) >= rounds {
			c.pending = c.pending[1:]
		}
		c.pending = append(c.pending, pendingClaim{int32(d.Node), uint32(d.Version), name, d.Held.Floor, d.Held.Limit})
	} else if landed {
		p.seen.version = uint32(d.Version) + 1
	}
	p.served = true
	f.next(i, back, swapped)
}

// landed goes on when the write of a claim has ended.
func (f *fleet) landed(i int32, p *process, now int64) {
	c := p.claim
	d := c.decision
	switch {
	case p.unknown:
		f.nextClaimed(i, p, 0, now)
	case p.seen.version > 0:
		f.hold(i, p, int32(d.Node), p.seen.version, d.Held.Floor, d.Held.Limit, now)
	default:
		for k := range c.free {
			if int64(c.free[k].node) == d.Node {
				c.free[k].taken = true
			}
		}
		f.chooseAgain(i, p, now)
	}
}

// hold notes that a cell is ours.
func (f *fleet) hold(i int32, p *process, node int32, version uint32, floor, limit uint64, now int64) {
	f.meter.claim(int(i), now, p.trips)
	p.node, p.version, p.floor, p.limit = node, version, floor, limit
	p.claim, p.unknown, p.doubt, p.failures, p.trips = nil, false, false, 0, 0
	p.due = now + int64(protocol.Spread(time.Duration(f.window/3), f.rng.Uint64()))
	f.rest(i, p, now)
}
