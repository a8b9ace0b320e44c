package sequence_test

import (
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/fleettest"
)

// ledger is the cell of a sequence, as the run knows it.
type ledger struct {
	f      *fleet
	name   string
	record cell.Sequence
	before map[string]string // by the name of a write: that of the write before
	lives  map[string]*life  // by ID
	issued map[int64]*life   // by number: the last that has issued it
}

// life is a sequence from its creation to its deletion.
type life struct {
	c       *ledger
	mode    string
	most    cell.Sequence  // as it was created, with the highest Max and MaxStep that it ever had
	grants  []grant        // ascending
	undone  []grant        // that the store has lost
	issued  map[uint64]int // by index: how often
	stamped uint64         // the index after the highest that was issued, of those that the store knows
	latest  int64          // the largest number that a call has returned, or -1
	rewound bool
}

// grant is a range of indexes that the store says a process has.
type grant struct {
	count.Range
	owner *fleettest.Process
	write string
	at    int64 // true time
}

// landed is told of each write that takes effect.
func (c *ledger) landed(p *fleettest.Process, r cell.Sequence) {
	f, was := c.f, c.record
	c.record = r
	c.before[r.Write] = was.Write
	if r.ID != was.ID && was.ID != "" && !was.Deleted && !r.Lost {
		f.Fail("created over another", "%s creates %s anew: %s", p.Name, c.name, text(was))
	}
	if r.Writes != was.Writes+1 && !r.Lost {
		f.Fail("write over another history", "%s writes %s over %s", p.Name, text(r), text(was))
	}
	if r.LastNumber() > r.Max {
		f.Fail("maximum below a grant", "%s writes %s over %s", p.Name, text(r), text(was))
	}
	l := c.lives[r.ID]
	if l == nil {
		l = &life{c: c, mode: r.Mode, most: r, issued: map[uint64]int{}, latest: -1}
		c.lives[r.ID] = l
	}
	l.most.Max, l.most.MaxStep = max(l.most.Max, r.Max), max(l.most.MaxStep, r.MaxStep)
	switch {
	case r.ID != was.ID:
		if r.Next != 0 && !was.Deleted && !r.Lost {
			f.Fail("created in the middle", "%s creates %s with %s", p.Name, c.name, text(r))
		}
		return
	case r.Lost && !was.Lost:
		f.Tally["marks"]++
		if f.Tally["rewinds"] == 0 {
			f.Fail("marked for no reason", "%s marks %s: %s, %s before", p.Name, c.name, text(r), text(was))
		}
	case r.Next > was.Next && r.From == was.Next: // a grant
		f.Tally["grants"]++
		if was.Lost || was.Deleted {
			f.Fail("grant of a marked or deleted sequence", "%s: %s", p.Name, text(was))
		}
		l.grants = append(l.grants, grant{count.Range{From: r.From, To: r.Next}, p, r.Write, f.Now})
		return
	case r.Next < was.Next:
		f.Tally["given back"]++
	}
	l.lower(p, r.Next)
}

// lower takes the ranges from next on from their owner, who gives them back.
func (l *life) lower(p *fleettest.Process, next uint64) {
	f := l.c.f
	for n := len(l.grants); n > 0 && l.grants[n-1].To > next; n = len(l.grants) {
		g := &l.grants[n-1]
		if g.owner != p {
			f.Fail("gives back another's numbers", "%s sets %s to %d, but %s has %d to %d", p.Name, l.c.name, next, g.owner.Name, g.From, g.To)
		}
		if g.To = next; g.From >= next {
			l.grants = l.grants[:n-1]
		}
	}
	if next < l.stamped {
		f.Fail("gives back an issued number", "%s sets %s to %d, but %d was issued", p.Name, l.c.name, next, l.stamped-1)
	}
}

// rewound is told that the store went back, and that the cell has this record now.
func (c *ledger) rewound(r cell.Sequence) {
	c.record = r
	for id, l := range c.lives {
		next := uint64(0)
		if id == r.ID {
			next = r.Next
		}
		l.rewound = true
		for n := len(l.grants); n > 0 && l.grants[n-1].To > next; n = len(l.grants) {
			g := &l.grants[n-1]
			lost := *g
			lost.From = max(g.From, next)
			l.undone = append(l.undone, lost)
			if g.To = next; g.From >= next {
				l.grants = l.grants[:n-1]
			}
		}
		l.stamped = 0
		for i := range l.issued {
			if i < next {
				l.stamped = max(l.stamped, i+1)
			}
		}
	}
}

// past reports whether a write is the last of a record, or one before it.
func (c *ledger) past(r cell.Sequence, write string) bool {
	for name := r.Write; name != ""; name = c.before[name] {
		if name == write {
			return true
		}
	}
	return false
}

// lost reports how often the store has lost an index, and whether p had it then.
func (l *life) lost(p *process, index uint64) (times int, ours bool) {
	for _, g := range l.undone {
		if g.From <= index && index < g.To {
			times++
			ours = ours || g.owner == p.Process
		}
	}
	return times, ours
}

// holder returns the grant of an index, or nil.
func (l *life) holder(index uint64) *grant {
	for i := len(l.grants) - 1; i >= 0; i-- {
		if g := &l.grants[i]; g.From <= index && index < g.To {
			return g
		}
	}
	return nil
}

// issued is told of the numbers that a call has returned.
func (f *fleet) issued(t call, number int64) {
	s, p, l, n := t.s, t.s.p, t.s.life(), t.n
	r := l.most
	f.Issued += int(n)
	t.Tracef("%s issues %d, and %d in all", l.c.name, number, n)
	if t.late {
		f.Fail("close", "%s has closed %s, and issues %d", p.Name, l.c.name, number)
	}
	if last := number + (n-1)*r.Stride; last > r.Max || last < number {
		f.Fail("above the maximum", "%s issues %s %d, and its maximum is %d", p.Name, l.c.name, last, r.Max)
	}
	if number <= t.floor {
		f.Fail("order", "%s issues %s %d, after %d was returned", p.Name, l.c.name, number, t.floor)
	}
	if t.warned && s.grants == t.grants {
		f.Fail("issued after it noticed", "%s issues %s %d, and has noticed that the store went back", p.Name, l.c.name, number)
	}
	s.returned = max(s.returned, number+(n-1)*r.Stride)
	if l.mode == "ordered" {
		if number <= t.latest && !l.rewound {
			f.Fail("order in real time", "%s issues %s %d, after a process got %d", p.Name, l.c.name, number, t.latest)
		}
		l.latest = max(l.latest, number+(n-1)*r.Stride)
	}
	for k := range n {
		x := number + k*r.Stride
		if x < r.Start+r.Offset || (x-r.Start-r.Offset)%r.Stride != 0 {
			f.Fail("a number that the stride skips", "%s issues %s %d, of the start %d, the stride %d and the offset %d", p.Name, l.c.name, x, r.Start, r.Stride, r.Offset)
			return
		}
		if o := l.c.issued[x]; o != nil && o != l && !o.rewound && !l.rewound {
			f.Fail("number of a deleted sequence", "%s issues %s %d, as did the one that was deleted before", p.Name, l.c.name, x)
		}
		l.c.issued[x] = l
		index := uint64(x-r.Start-r.Offset) / uint64(r.Stride)
		f.issuedIndex(t, l, index)
	}
}

func (f *fleet) issuedIndex(t call, l *life, index uint64) {
	s, p := t.s, t.s.p
	lost, ours := l.lost(p, index)
	l.issued[index]++
	s.issued++
	switch times := l.issued[index]; {
	case times > 1+lost:
		f.Fail("duplicate", "%s issues index %d of %s, which was issued %d times before, and the store lost it %d times", p.Name, index, l.c.name, times-1, lost)
	case times > 1:
		f.Tally["repeats"]++
	}
	g := l.holder(index)
	switch {
	case g == nil && !ours, g != nil && g.owner != p.Process && !ours:
		f.Fail("number without a grant", "%s issues index %d of %s", p.Name, index, l.c.name)
	case g != nil && g.owner == p.Process && l.mode == "ordered" && g.at < t.began:
		f.Fail("granted before the call", "%s issues index %d of %s, written at %s, and the call began at %s", p.Name, index, l.c.name, time.Duration(g.at), time.Duration(t.began))
	case g != nil && g.owner == p.Process:
		l.stamped = max(l.stamped, index+1)
	}
}

// checkLiveness makes sure that every process has got a number of each of its sequences
// since a time, or has learnt that there is none.
func (f *fleet) checkLiveness(since int64) {
	for _, p := range f.all {
		for _, s := range p.opened {
			switch {
			case p.Dead, p.Closing, p.issuers == 0, p.Started > since-f.bound()/2:
			case s.served > since:
				f.Tally["live"]++
			default:
				f.Fail("liveness", "%s has had no number of %s since %s, and the faults were over at %s: cell %s; last error %v",
					p.Name, s.life().c.name, time.Duration(s.served), time.Duration(f.CalmSince), text(s.life().c.record), s.err)
			}
		}
	}
}

// checkMissing holds the numbers that are missing against those that may be: at a crash,
// and after a write of unknown outcome that was never read back.
func (f *fleet) checkMissing() {
	for _, p := range f.all {
		for _, s := range p.opened {
			l := s.life()
			if l.rewound {
				continue // the store has lost who had which number
			}
			var missing, unknown int64
			for _, g := range l.grants {
				if g.owner != p.Process {
					continue
				}
				n := int64(0)
				for i := g.From; i < g.To; i++ {
					if l.issued[i] == 0 {
						n++
					}
				}
				missing += n
				if !p.known[g.write] {
					unknown += n
				}
			}
			f.Tally["missing"] += int(missing)
			stats := s.s.Stats()
			bound := int64(stats.Lost) + unknown
			switch {
			case p.clean:
				f.Tally["clean"]++
				if int64(stats.Issued) != s.issued {
					f.Fail("stats", "%s has issued %d numbers of %s, and says %d", p.Name, s.issued, l.c.name, stats.Issued)
				}
			case l.mode == "ordered":
				bound += s.running
			default:
				bound += 2*l.most.MaxStep + s.largest + s.abandoned
			}
			if missing > bound {
				f.Fail("missing", "%d numbers of %s are missing that %s was granted, and at most %d may be: clean %t, %d of writes of unknown outcome, %+v",
					missing, l.c.name, p.Name, bound, p.clean, unknown, stats)
			}
		}
	}
}
