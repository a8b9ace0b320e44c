package grant

import (
	"cmp"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/explore"
)

// A key says of a state all that can matter, once for all states that are alike:
//
//   - Processes are sorted, and the writes in flight of each.
//   - A name or token matters only if its process may meet it: in a cell, or in a write in
//     flight. So a key says of each name that a process knows where it may meet it.
//   - A version matters only if it is, or may become again, that of the cell.
//   - A window without a tick left matters only if it has the grant of the held cell.
type keys struct {
	w *world
	*state
	explore.Key

	places []place
	names  []string // those that the process in turn may meet
}

// place is where all processes may meet their names: a cell in one of its states, or a write.
type place struct {
	node   int64
	record *cell.Node
	write  bool
}

// Key appends the key of a state.
func (w *world) Key(s *state, buf []byte) []byte {
	var places [8]place
	var names [32]string
	k := &keys{w, s, buf, places[:0], names[:0]}
	k.Add(s.witness, uint64(min(s.stamper, 0)+2), uint64(s.phase), uint64(s.stale), uint64(s.moved), s.floor[1], s.seen) // of a living stamper, process says so
	for n := range w.cells {
		k.kept(int64(n), &s.cells[n])
	}
	for n := range w.cells {
		if s.phase == backedUp {
			same := s.saved[n].version == s.cells[n].version
			if k.Flags(same); !same { // something was written since the backup
				k.kept(int64(n), &s.saved[n])
			}
		}
	}
	for n := range w.cells {
		if w.stale > 0 && s.older[n].last > 0 {
			k.Flags(true)
			k.kept(int64(n), &s.older[n])
		}
	}
	k.messages(w.untold, nobody)
	if w.untold {
		for i := range w.procs {
			k.process(i)
		}
		return k.Key
	}
	k.Sorted(w.procs, false, k.process)
	return k.Key
}

// kept appends a cell of the store.
func (k *keys) kept(n int64, c *kept) {
	k.Flags(c.version != 0, c.damaged)
	if c.version == 0 {
		return
	}
	k.record(&c.record)
	k.places = append(k.places, place{n, &c.record, false})
}

// record appends what everybody sees in a record.
func (k *keys) record(r *cell.Node) {
	k.Add(r.Limit, r.Floor)
	k.Flags(r.Holder != "", r.Reserved, r.MovedTo != "", r.Later)
}

// version says which version of the cell x is.
func (k *keys) version(node int64, x uint64) uint64 {
	switch x {
	case 0:
		return 0
	case k.cells[node].version:
		return 4
	case k.saved[node].version:
		return 3
	case k.older[node].version:
		return 2
	}
	return 1
}

// knows reports whether a machine may recognize a name.
func (p *proc) knows(name string) bool {
	switch {
	case p.told:
		return false
	case p.m.held.Version != 0 && (p.m.held.Write == name || slices.Contains(p.m.held.Pending, name)):
		return true
	}
	return slices.ContainsFunc(p.m.claims, func(c Pending) bool { return c.Name == name })
}

// messages appends the writes in flight of a process, or of nobody, in an order of their own.
func (k *keys) messages(all bool, by int) {
	var room [8]*message
	which := room[:0]
	for i := range k.net {
		if all || k.net[i].by == by {
			which = append(which, &k.net[i])
		}
	}
	slices.SortFunc(which, func(a, b *message) int { return cmp.Compare(k.look(a, by), k.look(b, by)) })
	k.Add(uint64(len(which)))
	for _, m := range which {
		k.Add(uint64(m.node), k.version(m.node, m.version))
		k.record(&m.record)
		if all {
			k.Add(uint64(m.by + 1))
		}
		if by == nobody {
			k.places = append(k.places, place{m.node, &m.record, true})
			continue
		}
		k.Flags(m.record.Holder == k.procs[by].m.token)
		k.names = append(k.names, m.record.Write)
	}
}

// look is by what writes in flight are sorted.
func (k *keys) look(m *message, by int) uint64 {
	x := uint64(m.node)<<16 | m.record.Limit<<8 | m.record.Floor<<4
	if m.record.Holder != "" {
		x |= 1
	}
	if by != nobody && k.procs[by].knows(m.record.Write) {
		x |= 2
	}
	return x
}

// where says in which places the process in turn may meet a name.
func (k *keys) where(name string) (at uint64) {
	for i, met := range k.names {
		if met == name && name != "" {
			at |= 1 << i
		}
	}
	return at
}

// name appends where the process may meet a name.
func (k *keys) name(name string) {
	at := k.where(name)
	k.Add(at, at>>8, at>>16, at>>24)
}

// process appends a process.
func (k *keys) process(i int) {
	p := &k.procs[i]
	m, win := &p.m, &p.win
	k.Flags(k.w.untold && m.token == k.procs[0].m.token, k.stamper == i, p.told, win.sealed)
	if k.w.copied { // the same floor may be claimed again
		k.Add(uint64(win.given.Node), win.given.From)
	}
	if p.told { // what is left of a memory that is a copy
		k.Add(win.used)
		if k.w.back {
			k.Add(m.most, m.least)
		}
		return
	}
	for n := range k.w.cells {
		k.Flags(k.cells[n].lock == i+1)
	}
	k.names = k.names[:0]
	for _, at := range k.places {
		r := at.record
		k.Flags(r.Holder == m.token)
		k.names = append(k.names, r.Write)
		for n := range k.w.kept {
			switch {
			case at.write:
			case n < len(r.Last):
				k.names = append(k.names, r.Last[n])
			default:
				k.names = append(k.names, "")
			}
		}
	}
	if !k.w.untold {
		k.messages(false, i)
	}

	// The machine.
	h := &m.held
	issued := h.Version != 0 && win.given.To > 0 && win.given.Node == h.Node && win.given.From == h.Floor
	k.Flags(h.Version != 0, issued, m.doubt, m.suspect, m.raise.due, m.over, p.noticed, p.since)
	if h.Version != 0 {
		k.Add(uint64(h.Node), k.version(h.Node, h.Version), h.Floor, h.Limit, h.acknowledged, k.version(h.Node, m.raise.version))
		k.name(h.Write)
		for _, name := range h.Pending {
			if k.where(name) != 0 {
				k.name(name)
			}
		}
	}
	k.Add(0xff)
	dead := uint64(0) // claims that have not landed, and cannot land any more
	for _, c := range m.claims {
		if k.where(c.Name) == 0 {
			x := 0
			switch {
			case c.Version == k.cells[c.Node].version:
				x = 2
			case k.w.mayReturn(k.state, c.Node, c.Version):
				x = 1
			}
			dead |= 1 << (3*int(c.Node) + x)
			continue
		}
		k.name(c.Name)
		k.Add(uint64(c.Node), k.version(c.Node, c.Version), c.Floor)
	}
	k.Add(dead)
	k.Add(0xff)
	if k.w.back {
		k.Add(m.most, m.least, p.limit, win.since.From, win.since.To)
		k.Add(uint64(win.Node), win.From, win.To, uint64(win.given.Node), win.given.From, win.given.To) // the same may be claimed again
	}

	// The window.
	switch {
	case !win.sealed:
		k.Add(win.used)
	case issued: // it is used for the release only
		k.Add(max(win.used, h.Floor))
	}
	if k.w.broken == "M11_EARLY" {
		k.Flags(p.early, m.sealed)
		k.Add(m.used)
	}
	has := (!win.sealed || k.w.broken == "M11_UNSEAL") && !k.w.back && win.To > 0 && (issued || win.free())
	if k.Flags(has, k.w.moves && win.given.Node > 0); has {
		k.Add(uint64(win.Node), win.To)
	}
	k.Add(win.issued, p.untold)

	if o := p.again; o != nil {
		k.Add(uint64(o.Node), o.Record.Floor, o.Record.Limit)
	}
}
