package sequence_test

import (
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
)

// ledger is the cell of a sequence, as the run knows it.
type ledger struct {
	f      *fleet
	record cell.Sequence
	lives  map[string]*life // by ID
	issued map[int64]*life  // by number: the last that has issued it
}

// life is a sequence from its creation to its deletion.
type life struct {
	c       *ledger
	most    cell.Sequence // as it was created, with the highest Max and MaxStep that it ever had
	latest  int64         // the largest number that a call has returned, or -1
	rewound bool

	// By index.
	owners map[uint64]owner
	issued map[uint64]int                  // how often
	undone map[uint64][]*fleettest.Process // who had it each time that the store lost it
}

// owner is who was granted an index, and by which write.
type owner struct {
	*fleettest.Process
	write string
}

// landed is told of each write that takes effect.
func (c *ledger) landed(p *fleettest.Process, r cell.Sequence) {
	f, was := c.f, c.record
	c.record = r
	l := c.lives[r.ID]
	if l == nil {
		l = &life{c: c, most: r, latest: -1, owners: map[uint64]owner{}, issued: map[uint64]int{}, undone: map[uint64][]*fleettest.Process{}}
		c.lives[r.ID] = l
	}
	l.most.Max, l.most.MaxStep = max(l.most.Max, r.Max), max(l.most.MaxStep, r.MaxStep)
	switch {
	case r.Lost && !was.Lost && f.Tally["rewinds"] == 0:
		f.Fail("marked for no reason", "%s marks the sequence: %s, %s before", p.Name, text(r), text(was))
	case r.ID != was.ID && was.ID != "" && !was.Deleted && !r.Lost:
		f.Fail("created over another", "%s creates the sequence anew: %s", p.Name, text(was))
	case r.ID == was.ID && r.Next > was.Next && r.From == was.Next: // a grant
		f.Tally["grants"]++
		if was.Lost || was.Deleted {
			f.Fail("grant of a marked or deleted sequence", "%s: %s", p.Name, text(was))
		}
		for i := r.From; i < r.Next; i++ {
			l.owners[i] = owner{p, r.Write}
		}
	case r.ID == was.ID:
		l.lower(p, r.Next, was.Next)
	}
}

// lower takes indexes from their owner, who gives them back.
func (l *life) lower(p *fleettest.Process, from, to uint64) {
	f := l.c.f
	for i := from; i < to; i++ {
		if o := l.owners[i]; o.Process != p {
			f.Fail("gives back another's number", "%s sets next to %d, but %v has %d", p.Name, from, o, i)
		}
		if l.issued[i] > len(l.undone[i]) {
			f.Fail("gives back an issued number", "%s sets next to %d, but %d was issued", p.Name, from, i)
		}
		delete(l.owners, i)
	}
}

// rewound is told that the store went back, and that the cell has this record now.
func (c *ledger) rewound(r cell.Sequence) {
	c.record = r
	for id, l := range c.lives {
		l.rewound = true
		for i, o := range l.owners {
			if id != r.ID || i >= r.Next {
				l.undone[i] = append(l.undone[i], o.Process)
				delete(l.owners, i)
			}
		}
	}
}

// issued is told of the numbers that a call has returned.
func (f *fleet) issued(t call, number int64) {
	p, l, n := t.p, t.p.life(), t.n
	r := l.most
	last := number + (n-1)*r.Stride
	f.Issued += int(n)
	t.Tracef("issues %d, and %d in all", number, n)
	if t.late {
		f.Fail("close", "%s has closed, and issues %d", p.Name, number)
	}
	if last > r.Max || last < number {
		f.Fail("above the maximum", "%s issues %d, and the maximum is %d", p.Name, last, r.Max)
	}
	if number <= t.returned {
		f.Fail("order", "%s issues %d, after %d was returned", p.Name, number, t.returned)
	}
	if t.warned && p.s.Noticed() && p.trusts == t.trusts {
		f.Fail("issued after it noticed", "%s issues %d, and has noticed that the store went back", p.Name, number)
	}
	if r.Mode == string(ordered) && number <= t.latest && !l.rewound {
		f.Fail("order in real time", "%s issues %d, after a process got %d", p.Name, number, t.latest)
	}
	p.returned, l.latest = max(p.returned, last), max(l.latest, last)
	for x := number; x <= last; x += r.Stride {
		offset := x - r.Start - r.Offset
		if offset < 0 || offset%r.Stride != 0 {
			f.Fail("a number that the stride skips", "%s issues %d, of the start %d, the stride %d and the offset %d", p.Name, x, r.Start, r.Stride, r.Offset)
			return
		}
		if o := l.c.issued[x]; o != nil && o != l && !o.rewound && !l.rewound {
			f.Fail("number of a deleted sequence", "%s issues %d, as did the one that was deleted before", p.Name, x)
		}
		l.c.issued[x] = l
		index := uint64(offset / r.Stride)
		undone := l.undone[index]
		l.issued[index]++
		p.issued++
		if times := l.issued[index]; times > 1+len(undone) {
			f.Fail("duplicate", "%s issues index %d, which was issued %d times before, and the store lost it %d times", p.Name, index, times-1, len(undone))
		}
		if l.owners[index].Process != p.Process && !slices.Contains(undone, p.Process) {
			f.Fail("number without a grant", "%s issues index %d", p.Name, index)
		}
	}
}

// checkLiveness makes sure that every process has got a number since a time, or has learnt that there is none.
func (f *fleet) checkLiveness(since int64) {
	for _, p := range f.all {
		if !p.Ready() || p.Dead || p.Closing || p.issuers == 0 || p.Started > since-f.bound()/2 || p.served > since {
			continue
		}
		f.Fail("liveness", "%s has had no number since %s, and the faults were over at %s: cell %s; last error %v",
			p.Name, time.Duration(p.served), time.Duration(f.CalmSince), text(f.cell.record), p.err)
	}
}

// checkMissing holds the numbers that are missing against those that may be: at a crash,
// and after a write of unknown outcome that was never read back.
func (f *fleet) checkMissing() {
	for _, p := range f.all {
		if !p.Ready() || p.life().rewound { // the store has lost who had which number
			continue
		}
		l, stats := p.life(), p.s.Stats()
		var missing, unknown int64
		for i, o := range l.owners {
			if o.Process == p.Process && l.issued[i] == 0 {
				if missing++; !p.known[o.write] {
					unknown++
				}
			}
		}
		f.Tally["missing"] += int(missing)
		bound := int64(stats.Lost) + unknown
		switch {
		case p.clean:
			if f.Tally["clean"]++; int64(stats.Issued) != p.issued {
				f.Fail("stats", "%s has issued %d numbers, and says %d", p.Name, p.issued, stats.Issued)
			}
		default: // a call that ran had perhaps been handed its numbers
			bound += p.running
			if l.most.Mode != string(ordered) {
				bound += 2*l.most.MaxStep + p.largest + p.abandoned
			}
		}
		if missing > bound {
			f.Fail("missing", "%d numbers are missing that %s was granted, and at most %d may be: clean %t, %d of writes of unknown outcome, %+v",
				missing, p.Name, bound, p.clean, unknown, stats)
		}
	}
}
