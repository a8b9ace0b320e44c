package count

import (
	"cmp"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
)

// exact says that nothing is left out of the keys, as the number of writes is bounded. Else the
// count of writes is how many there were since, and of what a process knows only that which it
// compares with the cell is in the key.
func (w *world) exact() bool { return w.back || w.stale > 0 || w.plain }

// named says that each write in flight is told from all others. Else those of one process that say the same
// are alike.
func (w *world) named() bool { return w.exact() || w.restore }

// keys appends the key of a state.
type keys struct {
	*world
	*state
	flight []write  // sorted
	names  []string // of the cell in its states: each has that of its write, and those before
	explore.Key
}

// Key appends what a state is, whatever versions, writes and processes are called.
func (w *world) Key(s *state, buf []byte) []byte {
	var names [16]string
	k := &keys{w, s, s.flight, names[:0], buf}
	r := &s.now.Record
	k.meet(r)
	for _, p := range s.past {
		k.meet(&p.Record)
	}
	k.Add(uint64(r.Next), uint64(r.Max), uint64(s.issued), uint64(s.issued>>8), uint64(s.high))
	k.Flags(r.Lost, r.Deleted, s.copied != nil, s.history.begun)
	k.Add(uint64(r.Creation))
	if w.named() {
		if len(k.flight) > 1 {
			k.flight = slices.Clone(k.flight)
			slices.SortStableFunc(k.flight, func(a, b write) int {
				return cmp.Or(cmp.Compare(k.version(a.version), k.version(b.version)), cmp.Compare(a.why, b.why), cmp.Compare(a.record.Next, b.record.Next), cmp.Compare(a.record.From, b.record.From))
			})
		}
	}
	if w.exact() {
		k.Add(uint64(r.From), uint64(r.Most), uint64(r.Writes), uint64(r.Before), uint64(len(r.Last)))
		k.Flags(s.history.begun, s.history.over, s.history.returned)
		k.Add(uint64(s.history.peak), uint64(s.history.safe), uint64(len(s.past)))
		for _, p := range s.past {
			k.record(&p.Record)
		}
	}
	if w.named() {
		k.Add(uint64(len(k.flight)))
		for i := range k.flight {
			f := &k.flight[i]
			k.Add(k.version(f.version), uint64(f.why), uint64(f.from), uint64(f.to))
			if w.exact() {
				k.record(f.record)
			}
		}
		if s.copied != nil {
			k.process(nobody, s.copied)
		}
	} else {
		k.flights(nobody, nil)
	}
	k.Sorted(w.procs, false, func(i int) { k.process(int8(i), s.running[i]) })
	return k.Key
}

func (k *keys) meet(r *cell.Sequence) { k.names = append(append(k.names, r.Write), r.Last...) }

const (
	dropped = 0   // a name or version that can be met no more
	flying  = 100 // of a write in flight, and above
)

// role says where a name can be met.
func (k *keys) role(name string) uint64 {
	if i := slices.Index(k.names, name); i >= 0 {
		return uint64(1 + i)
	}
	for i := range k.flight {
		if k.flight[i].record.Write == name {
			if !k.named() {
				i = 0 // its range says which
			}
			return flying + uint64(i)
		}
	}
	return dropped
}

// version says which state of the cell has a version.
func (k *keys) version(v uint64) uint64 {
	if v == k.now.Version {
		return 1
	}
	for i, p := range k.past {
		if v == p.Version {
			return uint64(2 + i)
		}
	}
	return dropped
}

// record appends a record.
func (k *keys) record(r *cell.Sequence) {
	k.Add(uint64(r.Next), uint64(r.From), uint64(r.Most), uint64(r.Writes), uint64(r.Creation), uint64(r.Max), uint64(r.Before), k.role(r.Write))
	k.Flags(r.Lost, r.Deleted, r.ID == k.now.Record.ID)
}

// process appends a process.
func (k *keys) process(i int8, p *process) {
	if p == nil {
		k.Add(0xff)
		return
	}
	m, w := &p.machine, &p.window
	switch {
	case w.sealed && !k.plain:
		k.Add(0, 0, 0, 0)
	case w.used == w.to && !k.plain: // no number is left of the present range
		k.Add(0, 0, uint64(w.pf), uint64(w.pt))
	default:
		k.Add(uint64(w.used), uint64(w.to), uint64(w.pf), uint64(w.pt))
	}
	k.Flags(w.sealed, p.closing, p.restored, p.knows, p.proof)
	for _, c := range p.calls {
		k.Add(uint64(c.above), uint64(c.n))
	}
	k.Add(0xfe)
	for _, r := range m.owned {
		if r.To > uint64(w.used) {
			k.Add(uint64(max(r.From, uint64(w.used))), uint64(r.To))
		}
	}
	k.Add(0xfe)

	// What it knows of the cell.
	known := m.Known().Record
	k.Flags(known.ID == k.now.Record.ID, known.Creation == k.now.Record.Creation)
	last := len(m.owned) - 1
	spent := last < 0 || m.owned[last].To <= uint64(w.used)
	switch {
	case k.plain:
		k.Flags(m.doubt, m.fresh)
		k.Add(uint64(m.top), k.version(m.known.Version))
		k.record(&known)
	case k.exact():
		at := k.version(m.known.Version)
		doubt := m.doubt || spent && (at == dropped || k.stale > 0 || k.history.over)
		k.Flags(doubt)
		k.Add(at)
		if at != 1 && !doubt { // it writes and meets another write, and then reads
			k.Flags(!spent && m.owned[last].To == known.Next)
		}
		if k.back {
			k.Add(uint64(m.top))
		}
		switch {
		case at != dropped:
		case k.back:
			k.Add(uint64(known.Most), uint64(known.Writes), uint64(known.Creation), uint64(known.Max), uint64(known.Before), k.role(known.Write))
		default:
			k.Add(uint64(known.Writes), k.role(known.Write))
		}
	case m.gaveBack():
		k.Add(0xf2, k.version(m.known.Version), k.role(known.Write), uint64(min(k.now.Record.Writes-known.Writes, uint64(k.kept)+1)))
		k.Flags(m.doubt)
	case spent: // whatever it knows, it writes, or meets another write, reads and writes
		k.Add(0xf3)
	case m.doubt:
		k.Add(0xf0)
	default:
		k.Add(0xf1)
		k.Flags(m.known.Version == k.now.Version, last >= 0 && m.owned[last].To == known.Next)
	}
	k.Sorted(len(m.pending), true, func(i int) {
		q := &m.pending[i]
		role := k.role(q.Name)
		if role == dropped && !q.Back && !k.plain {
			return // it is forgotten at the next read
		}
		k.Add(role)
		k.Flags(q.Back)
		if role != dropped || k.plain {
			k.Add(uint64(q.From), uint64(q.To), p.rank(q.Upto))
		}
	})
	b := &m.wentBack
	k.Flags(b.suspect, b.proof, b.found != nil)
	k.Add(uint64(b.most))
	if b.found != nil {
		k.Add(k.version(b.found.Version))
		if b.found.Version != 0 {
			k.record(&b.found.Record)
		}
	}

	if !k.named() {
		k.flights(i, p)
	}
	if k.ordered {
		k.Add(p.rank(p.sentBy))
		if k.now.owner == i {
			k.Add(p.rank(k.now.arrived))
		}
	}
	if k.back {
		k.Add(uint64(p.seen.writes), uint64(p.seen.most), uint64(p.seen.marks), k.role(p.seen.write), uint64(p.top))
	}
	if p.again != nil {
		k.Add(p.again.From, p.again.To)
	}
	if p.token != "" {
		k.Add(k.role(p.token))
	}
	k.Add(0xfd)
}

// flights appends the writes of an owner that are in flight.
func (k *keys) flights(owner int8, p *process) {
	k.Sorted(len(k.flight), true, func(i int) {
		f := &k.flight[i]
		if f.owner != owner {
			return
		}
		k.Add(uint64(f.why), uint64(f.from), uint64(f.to))
		if p != nil {
			k.Add(p.rank(f.arrived))
		}
	})
}

// rank is how many of the calls that wait had arrived by then.
func (p *process) rank(arrival uint64) (n uint64) {
	for _, c := range p.calls {
		if c.arrival <= arrival {
			n++
		}
	}
	return n
}
