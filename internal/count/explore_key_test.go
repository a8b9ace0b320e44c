package count

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
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
	flight []write // sorted
	buf    []byte
}

// Key appends what a state is, whatever versions, writes and processes are called.
func (w *world) Key(s *state, buf []byte) []byte {
	k := &keys{w, s, s.flight, buf}
	r := &s.now.Record
	k.add(uint8(r.Next), uint8(r.Max), uint8(s.issued), uint8(s.issued>>8), s.high, s.floor)
	k.flag(r.Lost, r.Deleted, r.Move.Exported(), s.copied != nil, s.history.begun)
	k.add(uint8(r.Creation))
	if w.named() {
		if len(k.flight) > 1 {
			k.flight = slices.Clone(k.flight)
			slices.SortStableFunc(k.flight, func(a, b write) int {
				return cmp.Or(cmp.Compare(k.version(a.version), k.version(b.version)), cmp.Compare(a.why, b.why), cmp.Compare(a.record.Next, b.record.Next), cmp.Compare(a.record.From, b.record.From))
			})
		}
	}
	if w.exact() {
		k.add(uint8(r.From), uint8(r.Most), uint8(r.Writes), uint8(r.Before), uint8(len(r.Last)))
		k.flag(s.history.begun, s.history.over, s.history.returned)
		k.add(s.history.peak, s.history.safe, uint8(len(s.past)))
		for _, p := range s.past {
			k.record(&p.Record)
		}
	}
	if w.named() {
		k.add(uint8(len(k.flight)))
		for i := range k.flight {
			f := &k.flight[i]
			k.add(k.version(f.version), byte(f.why), f.from, f.to)
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
	k.processes()
	return k.buf
}

func (k *keys) add(b ...byte) { k.buf = append(k.buf, b...) }

func (k *keys) flag(flags ...bool) {
	var b byte
	for _, f := range flags {
		b <<= 1
		if f {
			b |= 1
		}
	}
	k.buf = append(k.buf, b)
}

const (
	dropped = 0   // a name or version that can be met no more
	flying  = 100 // of a write in flight, and above
)

// role says where a name can be met.
func (k *keys) role(name string) byte {
	role := byte(1)
	if met(&k.now.Record, name, &role) {
		return role
	}
	for _, p := range k.past {
		if met(&p.Record, name, &role) {
			return role
		}
	}
	for i := range k.flight {
		if k.flight[i].record.Write == name {
			if !k.named() {
				i = 0 // its range says which
			}
			return flying + byte(i)
		}
	}
	return dropped
}

func met(r *cell.Sequence, name string, role *byte) bool {
	if r.Write == name {
		return true
	}
	for _, last := range r.Last {
		*role++
		if last == name {
			return true
		}
	}
	*role++
	return false
}

// version says which state of the cell has a version.
func (k *keys) version(v uint64) byte {
	if v == k.now.Version {
		return 1
	}
	for i, p := range k.past {
		if v == p.Version {
			return byte(2 + i)
		}
	}
	return dropped
}

// record appends a record.
func (k *keys) record(r *cell.Sequence) {
	k.add(uint8(r.Next), uint8(r.From), uint8(r.Most), uint8(r.Writes), uint8(r.Creation), uint8(r.Max), uint8(r.Before), k.role(r.Write))
	k.flag(r.Lost, r.Deleted, r.Move.Exported(), r.ID == k.now.Record.ID)
}

// processes appends the processes, sorted.
func (k *keys) processes() {
	var at [most + 1]int
	at[0] = len(k.buf)
	for i := range k.world.procs {
		k.process(int8(i), k.running[i])
		at[i+1] = len(k.buf)
	}
	var order [most]int
	n := 0
	for i := range k.world.procs {
		key := k.buf[at[i]:at[i+1]]
		j := n
		for ; j > 0 && bytes.Compare(key, k.buf[at[order[j-1]]:at[order[j-1]+1]]) < 0; j-- {
			order[j] = order[j-1]
		}
		order[j] = i
		n++
	}
	for _, i := range order[:n] {
		k.add(k.buf[at[i]:at[i+1]]...)
	}
	k.buf = append(k.buf[:at[0]], k.buf[at[n]:]...)
}

// process appends a process.
func (k *keys) process(i int8, p *process) {
	if p == nil {
		k.add(0xff)
		return
	}
	m, w := &p.machine, &p.window
	switch {
	case w.sealed && !k.plain:
		k.add(0, 0, 0, 0)
	case w.used == w.to && !k.plain: // no number is left of the present range
		k.add(0, 0, w.pf, w.pt)
	default:
		k.add(w.used, w.to, w.pf, w.pt)
	}
	k.flag(w.sealed, p.closing, p.restored, p.revoked, p.knows, p.proof, m.sealed)
	for _, c := range p.calls {
		k.add(c.floor, c.n)
	}
	k.add(0xfe)
	for _, r := range m.owned {
		if r.To > uint64(w.used) {
			k.add(uint8(max(r.From, uint64(w.used))), uint8(r.To))
		}
	}
	k.add(0xfe)

	// What it knows of the cell.
	known := m.Known().Record
	k.flag(known.ID == k.now.Record.ID, known.Creation == k.now.Record.Creation)
	last := len(m.owned) - 1
	spent := last < 0 || m.owned[last].To <= uint64(w.used)
	switch {
	case k.plain:
		k.flag(m.doubt, m.fresh)
		k.add(uint8(m.top), k.version(m.known.Version))
		k.record(&known)
	case k.exact():
		at := k.version(m.known.Version)
		doubt := m.doubt || spent && (at == dropped || k.stale > 0 || k.history.over)
		k.flag(doubt)
		k.add(at)
		if at != 1 && !doubt { // it writes and meets another write, and then reads
			k.flag(!spent && m.owned[last].To == known.Next)
		}
		if k.back {
			k.add(uint8(m.top))
		}
		switch {
		case at != dropped:
		case k.back:
			k.add(uint8(known.Most), uint8(known.Writes), uint8(known.Creation), uint8(known.Max), uint8(known.Before), k.role(known.Write))
		default:
			k.add(uint8(known.Writes), k.role(known.Write))
		}
	case m.gaveBack():
		k.add(0xf2, k.version(m.known.Version), k.role(known.Write), uint8(min(k.now.Record.Writes-known.Writes, uint64(k.kept)+1)))
		k.flag(m.doubt)
	case spent && !k.apart: // whatever it knows, it writes, or meets another write, reads and writes
		k.add(0xf3)
	case m.doubt:
		k.add(0xf0)
	default:
		k.add(0xf1)
		k.flag(m.known.Version == k.now.Version, last >= 0 && m.owned[last].To == known.Next)
	}
	k.set(len(m.pending), func(i int) {
		q := &m.pending[i]
		role := k.role(q.Name)
		if role == dropped && !q.Back && !k.plain {
			return // it is forgotten at the next read
		}
		k.add(role)
		k.flag(q.Back)
		if role != dropped || k.plain {
			k.add(uint8(q.From), uint8(q.To), p.rank(q.Upto))
		}
	})
	b := &m.back
	k.flag(b.suspect, b.proof, b.found != nil)
	k.add(uint8(b.most))
	if b.found != nil {
		k.add(k.version(b.found.Version))
		if b.found.Version != 0 {
			k.record(&b.found.Record)
		}
	}

	// The operation that is out.
	k.add(byte(p.op.Why), byte(p.fate))
	switch {
	case p.op.Kind != Swap:
	case k.exact():
		k.add(k.version(p.op.Version), uint8(p.sent.from), uint8(p.sent.to), p.rank(p.op.Upto), p.rank(p.sent.arrived), k.version(p.landed))
		k.record(&p.op.Record)
	case p.fate == sent:
		k.add(k.role(p.op.Record.Write), p.sent.from, p.sent.to, p.rank(p.op.Upto), p.rank(p.sent.arrived))
	case p.fate == landed:
		k.add(p.sent.from, p.sent.to, p.rank(p.op.Upto), p.rank(p.sent.arrived))
		k.add(k.version(p.landed), k.role(p.op.Record.Write), uint8(min(k.now.Record.Writes-p.op.Record.Writes, uint64(k.kept)+1)))
	}
	if !k.named() {
		k.flights(i, p)
	}
	if k.ordered && k.now.owner == i {
		k.add(p.rank(k.now.arrived))
	}
	if k.back {
		k.add(p.seen.writes, p.seen.most, p.seen.marks, k.role(p.seen.write), p.top)
	}
	if k.name != "" {
		p.mutated.key(k)
	}
	k.add(0xfd)
}

// flights appends the writes of an owner that are in flight.
func (k *keys) flights(owner int8, p *process) {
	k.set(len(k.flight), func(i int) {
		f := &k.flight[i]
		if f.owner != owner {
			return
		}
		k.add(byte(f.why), f.from, f.to)
		if p != nil {
			k.add(p.rank(f.arrived))
		}
	})
}

// set appends the keys of n things, sorted, and each different one once.
func (k *keys) set(n int, key func(i int)) {
	if n == 0 {
		k.add(0xfc)
		return
	}
	begin := len(k.buf)
	var list [][]byte
	for i := range n {
		at := len(k.buf)
		key(i)
		if len(k.buf) > at {
			list = append(list, slices.Clone(k.buf[at:]))
		}
	}
	k.buf = k.buf[:begin]
	slices.SortFunc(list, bytes.Compare)
	for _, b := range slices.CompactFunc(list, bytes.Equal) {
		k.add(b...)
	}
	k.add(0xfc)
}

// rank is how many of the calls that wait had arrived by then.
func (p *process) rank(arrival uint64) (n byte) {
	for _, c := range p.calls {
		if c.arrival <= arrival {
			n++
		}
	}
	return n
}
