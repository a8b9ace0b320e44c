package grant

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/explore"
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

	// What the process in turn may meet in records: in a cell in one of its states, or in a write.
	holders, names []string
}

// unused keeps what the keys of millions of states need for a moment.
var unused = sync.Pool{New: func() any { return new(keys) }}

// Key appends the key of a state.
func (w *world) Key(s *state, buf []byte) []byte {
	k := unused.Get().(*keys)
	defer unused.Put(k)
	*k = keys{w, s, buf, k.holders[:0], k.names[:0]}
	k.Add(s.witness, uint64(min(s.stamper, 0)+2), uint64(s.phase), uint64(s.stale), uint64(s.moved), s.floor[1], s.seen) // of a living stamper, process says so
	if w.past {
		k.Add(uint64(s.issuers))
		k.Flags(s.old)
		for _, p := range append(s.past[:], s.saves) {
			k.Add(uint64(p.lanes))
			k.Flags(p.drawn[:]...)
		}
	}
	for n := range w.cells {
		k.kept(&s.cells[n])
	}
	for n := range w.cells {
		if s.phase == backedUp {
			same := s.saved[n].version == s.cells[n].version
			if k.Flags(same); !same { // something was written since the backup
				k.kept(&s.saved[n])
			}
		}
	}
	for n := range w.cells {
		if w.stale > 0 && s.older[n].last > 0 {
			k.Flags(true)
			k.kept(&s.older[n])
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
func (k *keys) kept(c *kept) {
	k.Flags(c.version != 0, c.damaged)
	if c.version == 0 {
		return
	}
	k.record(&c.record)
	for i := range k.w.kept {
		name := ""
		if i < len(c.record.Last) {
			name = c.record.Last[i]
		}
		k.names = append(k.names, name)
	}
}

// record appends what everybody sees in a record, and notes its names.
func (k *keys) record(r *cell.Node) {
	k.Add(r.Limit, r.Floor)
	k.Flags(r.Holder != "", r.Reserved, r.MovedTo != "", r.Later, r.Past == cell.Given, r.Past == cell.Retired)
	k.holders, k.names = append(k.holders, r.Holder), append(k.names, r.Write)
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

// messages appends the writes in flight of a process, or of nobody, in an order of their own.
func (k *keys) messages(all bool, by int) {
	var room [8]*message
	which := room[:0]
	for i := range k.net {
		if all || k.net[i].by == by {
			which = append(which, &k.net[i])
		}
	}
	slices.SortStableFunc(which, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.record.Limit, b.record.Limit), cmp.Compare(a.record.Floor, b.record.Floor))
	})
	k.Add(uint64(len(which)))
	for _, m := range which {
		k.Add(uint64(m.node), k.version(m.node, m.version))
		k.record(&m.record)
		if all {
			k.Add(uint64(m.by + 1))
		}
	}
}

// meets reports whether the process in turn may meet a name.
func (k *keys) meets(name string) bool { return name != "" && slices.Contains(k.names, name) }

// name appends where the process in turn may meet a name.
func (k *keys) name(name string) { k.places(k.names, name) }

func (k *keys) places(list []string, name string) {
	for i, met := range list {
		if met == name && name != "" {
			k.Add(uint64(i))
		}
	}
	k.Add(0xff)
}

// process appends a process.
func (k *keys) process(i int) {
	p := &k.procs[i]
	m, win := &p.m, &p.win
	k.Flags(k.w.untold && m.token == k.procs[0].m.token, k.stamper == i, p.told, win.sealed, p.knows, p.runs)
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
	holders, names := k.holders, k.names
	defer func() { k.holders, k.names = holders, names }()
	if !k.w.untold {
		k.messages(false, i)
	}
	k.places(k.holders, m.token)

	// The machine.
	h := &m.held
	issued := h.Version != 0 && win.given.To > 0 && win.given.Node == h.Node && win.given.From == h.Floor
	k.Flags(h.Version != 0, issued, m.doubt, m.suspect, m.raise.due, m.over, p.noticed, p.since)
	if h.Version != 0 {
		k.Add(uint64(h.Node), k.version(h.Node, h.Version), h.Floor, h.Limit, h.acknowledged, k.version(h.Node, m.raise.version))
		k.name(h.Write)
		for _, name := range h.Pending {
			if k.meets(name) {
				k.name(name)
			}
		}
	}
	k.Add(0xff)
	dead := uint64(0) // claims that have not landed, and cannot land any more
	for _, c := range m.claims {
		if !k.meets(c.Name) {
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
