package grant

import (
	"bytes"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/window"
)

// A key says of a state all that can matter, once for all states that are alike:
//
//   - Processes are sorted, and the writes in flight of each.
//   - A name or token matters only if its process may meet it: in a cell, or in a write in
//     flight. So a key says of each name in a cell which process knows it, and which one it is.
//   - A version matters only if it is, or may become again, that of the cell.
//   - A floor in a cell matters only if a process may compare it with its own limit.
//   - A window without a tick left matters only if it has the grant of the held cell.
//
// Key and Load are one text: a coder writes a state, or reads one.
type coder struct {
	w    *world
	s    *state
	buf  []byte
	load bool

	places []place
	names  []string // those that the process in turn may meet

	placeRoom [8]place
	nameRoom  [8]string
}

// place is where a process may meet its names: a cell in one of its states, or a write.
type place struct {
	node    int64
	version *uint64
	record  *cell.Node
	shared  bool // a write, of no process in particular
}

// byte writes v, or reads it.
func (c *coder) byte(v uint8) uint8 {
	if c.load {
		v, c.buf = c.buf[0], c.buf[1:]
		return v
	}
	c.buf = append(c.buf, v)
	return v
}

func (c *coder) num(x *uint64) {
	if v := uint64(c.byte(uint8(*x))); c.load {
		*x = v
	}
}

func (c *coder) node(x *int64) {
	if v := int64(c.byte(uint8(*x))); c.load {
		*x = v
	}
}

func (c *coder) flag(x *bool) bool {
	v := c.is(*x)
	if c.load {
		*x = v
	}
	return v
}

func (c *coder) is(v bool) bool {
	if c.load {
		return c.byte(0) != 0
	}
	if v {
		c.byte(1)
	} else {
		c.byte(0)
	}
	return v
}

// Versions of a loaded state.
const (
	pastVersion    = 1
	olderVersion   = 2
	savedVersion   = 3
	presentVersion = 4
)

// version writes which version of the cell x is.
func (c *coder) version(node int64, x *uint64) {
	class := uint8(1)
	switch *x {
	case 0:
		class = 0
	case c.s.cells[node].version:
		class = presentVersion
	case c.s.saved[node].version:
		class = savedVersion
	case c.s.older[node].version:
		class = olderVersion
	}
	if class = c.byte(class); c.load {
		*x = uint64(class)
	}
}

// name writes which of the names that the process may meet x is, or that it is none of them.
func (c *coder) name(x *string) {
	i := slices.Index(c.names, *x)
	if i = int(c.byte(uint8(i+1))) - 1; c.load {
		*x = "gone"
		if i >= 0 {
			*x = c.names[i]
		}
	}
}

// Key appends the key of a state.
func (w *world) Key(s *state, buf []byte) []byte {
	c := coder{w: w, s: s, buf: buf}
	c.shared()
	var parts [maxProcs][]byte
	var room [maxProcs][96]byte
	head := c.buf
	for i := range w.procs {
		c.buf = room[i][:0]
		c.proc(i)
		parts[i] = c.buf
	}
	if !w.untold {
		slices.SortFunc(parts[:w.procs], bytes.Compare)
	}
	for _, part := range parts[:w.procs] {
		head = append(head, part...)
	}
	return head
}

// Load returns a state with that key.
func (w *world) Load(key []byte) state {
	s := state{stamper: nobody}
	c := coder{w: w, s: &s, buf: key, load: true}
	c.shared()
	for i := range w.procs {
		c.proc(i)
	}
	for n := range w.cells {
		if s.phase == backedUp && s.saved[n].version == s.cells[n].version {
			s.saved[n] = s.cells[n] // with its names
		}
	}
	if w.kept > 0 {
		c.lasts()
	}
	return s
}

// lasts gives all records the names of the writes before them.
func (c *coder) lasts() {
	s := c.s
	for k := range s.inNet {
		m := &s.net[k]
		m.record.Last = c.namesOf(m.node, m.version)
	}
	for i := range c.w.procs {
		p := &s.procs[i]
		for _, at := range c.places {
			if r := at.record; !at.shared && at.node == p.m.held.Node && r.Write == p.m.held.Write {
				p.m.held.names = r.Names()
			}
		}
		p.op.Record.Last = c.namesOf(p.op.Node, p.op.Version)
		if p.m.raise.due {
			if at := c.find(p.m.held.Node, p.m.raise.version); at != nil {
				p.m.raise.found = *at.record
			}
		}
	}
}

// shared codes what belongs to no process.
func (c *coder) shared() {
	s, w := c.s, c.w
	c.num(&s.witness)
	switch c.byte(uint8(min(s.stamper, 0) + 2)) { // of a living one, proc says so
	case 0:
		s.setStamper(c.load, dead)
	}
	s.phase = phase(c.byte(uint8(s.phase)))
	s.stale = int(c.byte(uint8(s.stale)))
	s.moved = moved(c.byte(uint8(s.moved)))
	c.places = c.placeRoom[:0]
	for n := range w.cells {
		c.kept(int64(n), &s.cells[n], presentVersion)
	}
	if s.phase == backedUp {
		for n := range w.cells {
			c.kept(int64(n), &s.saved[n], savedVersion)
		}
	}
	if w.stale > 0 {
		for n := range w.cells {
			if c.is(s.older[n].last > 0) {
				c.kept(int64(n), &s.older[n], olderVersion)
				if c.load {
					s.older[n].last = 1
				}
			}
		}
	}
	c.messages(c.w.untold, nobody)
}

func (s *state) setStamper(set bool, who int) {
	if set {
		s.stamper = who
	}
}

// kept codes a cell of the store.
func (c *coder) kept(n int64, k *kept, version uint64) {
	if version == savedVersion && c.is(k.version == c.s.cells[n].version) {
		if c.load {
			*k = c.s.cells[n] // nothing was written since the backup
		}
		return
	}
	if c.load {
		k.last = presentVersion
	}
	if !c.is(k.version != 0) {
		return
	}
	if c.load {
		k.version = version
		k.record = loaded
		if c.w.kept > 0 {
			k.record.Last = slices.Repeat([]string{"foreign"}, c.w.kept)
		}
	}
	c.flag(&k.damaged)
	looked := c.looked(n, k)
	c.record(&k.record, looked)
	if c.is(looked) {
		c.num(&k.record.Floor)
	}
	c.places = append(c.places, place{node: n, version: &k.version, record: &k.record})
}

// loaded is a record of nobody.
var loaded = cell.Node{Layout: "layout", Write: "foreign"}

// record codes what everybody sees in a record.
func (c *coder) record(r *cell.Node, looked bool) {
	c.num(&r.Limit)
	held := c.is(!looked || r.Holder != "")
	if c.w.moves || c.w.reserves {
		c.flag(&r.Reserved)
	}
	if c.load {
		r.Window = c.w.window
		if r.Holder = ""; held {
			r.Holder = "dead"
		}
	}
}

// looked reports whether a machine may look at the floor and the holder of a cell.
func (c *coder) looked(n int64, k *kept) bool {
	if c.load || c.w.back || c.w.stale > 0 || c.w.untold || c.w.moves || c.w.chosen || c.w.reserves || c.w.apart {
		return true
	}
	for i := range c.w.procs {
		p := &c.s.procs[i]
		if !p.told && p.m.held.Version != 0 && p.m.held.Node == n && p.m.held.Version != k.version || p.wait && p.op.Node == n && p.fate == hasLanded && p.landed != k.version || p.knows(k.record.Write) {
			return true
		}
	}
	return false
}

// knows reports whether a machine may recognize a name.
func (p *proc) knows(name string) bool {
	if p.told {
		return false
	}
	if p.m.held.Version != 0 && (p.m.held.Write == name || slices.Contains(p.m.held.Pending, name)) || p.wait && p.op.Record.Write == name {
		return true
	}
	for i := range p.m.claims {
		if p.m.claims[i].Name == name {
			return true
		}
	}
	return false
}

// messages codes the writes in flight of a process, or of nobody, in an order of their own.
func (c *coder) messages(all bool, by int) {
	s := c.s
	var which [maxNet]int
	n := 0
	if !c.load {
		for k := range s.inNet {
			if all || s.net[k].by == by {
				which[n] = k
				n++
			}
		}
		slices.SortFunc(which[:n], func(a, b int) int { return int(c.look(a, by)) - int(c.look(b, by)) })
	}
	n = int(c.byte(uint8(n)))
	for _, k := range which[:n] {
		if c.load {
			k = s.inNet
			s.inNet++
			s.net[k] = message{by: by, record: loaded}
		}
		m := &s.net[k]
		c.node(&m.node)
		c.version(m.node, &m.version)
		c.record(&m.record, true)
		c.num(&m.record.Floor)
		if all {
			m.by = int(c.byte(uint8(m.by+1))) - 1
		}
		if by == nobody {
			c.places = append(c.places, place{node: m.node, version: &m.version, record: &m.record, shared: true})
			continue
		}
		mine := c.is(m.record.Holder == s.procs[by].m.token)
		if c.load && mine {
			m.record.Holder = s.procs[by].m.token
		}
		c.own(by, &m.record.Write, true)
	}
}

// look is by what writes in flight are sorted.
func (c *coder) look(k, by int) (x uint32) {
	m := &c.s.net[k]
	x = uint32(m.node)<<16 | uint32(m.record.Limit)<<8 | uint32(m.record.Floor)<<4
	if m.record.Holder != "" {
		x |= 1
	}
	if by != nobody {
		if p := &c.s.procs[by]; p.wait && p.op.Record.Write == m.record.Write {
			x |= 2
		} else if p.knows(m.record.Write) {
			x |= 4
		}
	}
	return x
}

var (
	own    = [maxProcs][]string{texts("a%d", 64), texts("b%d", 64), texts("c%d", 64)}
	tokens = texts("token %d", maxProcs)
)

// proc codes a process.
func (c *coder) proc(i int) {
	s, w := c.s, c.w
	p := &s.procs[i]
	m, win := &p.m, &p.win
	if c.load {
		*p = proc{m: New(w.config(), tokens[i])}
		if w.untold && i > 0 && c.is(false) {
			m.token = tokens[0]
		}
	} else if w.untold && i > 0 {
		c.is(m.token == s.procs[0].m.token)
	}
	if c.is(s.stamper == i) {
		s.setStamper(c.load, i)
	}
	if c.flag(&p.told) {
		c.restored(m, win)
		return
	}
	for n := range w.cells {
		if w.locker && c.is(s.cells[n].lock == i+1) && c.load {
			s.cells[n].lock = i + 1
		}
	}
	c.names = c.nameRoom[:0]
	for k := range c.places {
		c.place(i, &c.places[k])
	}
	if !w.untold {
		c.messages(false, i)
	}

	c.flag(&win.sealed)
	holds := c.is(m.held.Version != 0)
	issued := c.is(holds && win.given.To > 0 && win.given.Node == m.held.Node && win.given.From == m.held.Floor)

	// The machine.
	if h := &m.held; holds {
		c.node(&h.Node)
		c.version(h.Node, &h.Version)
		c.num(&h.Floor)
		limit := h.Limit
		if win.sealed && w.broken != unseal && !w.exact() { // then it matters only to the next release
			limit = h.Floor
			if issued {
				limit = min(max(h.Floor, win.used), h.Limit)
			}
		}
		if c.num(&limit); c.load {
			h.Limit = limit
		}
		c.name(&h.Write)
		c.num(&h.acknowledged)
		c.flag(&m.doubt)
		c.flag(&m.suspect)
		c.list(len(h.Pending), func(k int) *string { return &h.Pending[k] }, func(name string) { h.Pending = append(h.Pending, name) })
		if c.flag(&m.raise.due) {
			c.version(h.Node, &m.raise.version)
		}
	}
	c.claims(i)
	if w.back || w.broken != "" {
		c.num(&m.most)
		c.num(&m.least)
		c.num(&p.limit)
		c.flag(&p.noticed)
		c.flag(&p.since)
		for _, r := range []*window.Range{&win.Range, &win.given} { // the same may be claimed again
			c.node(&r.Node)
			c.num(&r.From)
			c.num(&r.To)
		}
		c.num(&win.since.From)
		c.num(&win.since.To)
	}
	if w.pinned {
		c.flag(&m.over)
	}

	// The window.
	switch used := win.used; {
	case !win.sealed:
		c.num(&win.used)
	case issued: // it is used for the release only
		used = max(used, m.held.Floor)
		if c.num(&used); c.load {
			win.used = used
		}
	}
	if w.broken == early && c.flag(&p.early) && c.flag(&m.sealed) {
		c.num(&m.used)
	}
	if win.sealed && c.load { // if it has not asked yet, it will be told this
		m.sealed, m.used = true, win.used
	}
	if issued && c.load && !w.back {
		win.given = m.held.span()
		win.given.To = max(win.given.To, 1)
	}
	if (!win.sealed || w.broken == unseal) && !w.back && c.is(win.To > 0 && (issued || win.free() || w.order)) {
		c.node(&win.Node)
		c.num(&win.To)
		if issued {
			if c.load {
				win.From = m.held.Floor
			}
		}
	}
	if w.order {
		c.flag(&win.open)
		c.node(&win.where)
	}
	if w.broken == m13 {
		c.num(&win.issued)
	}
	if w.untold {
		c.num(&p.untold)
	}

	if w.apart {
		c.probe(m)
	}
	if c.flag(&p.wait) {
		c.op(p)
	}
}

// probe writes what a claim has read so far.
func (c *coder) probe(m *Machine) {
	p := &m.probe
	c.buf = append(c.buf, byte(len(m.claims)), byte(p.asked), byte(len(p.waiting)), byte(p.stage), byte(p.search.Done), byte(p.others), byte(len(p.cells)))
	c.is(m.sealed)
	for _, claim := range m.claims {
		c.is(c.s.mayLand(claim.Name))
	}
	for _, cell := range p.cells {
		c.node(&cell.Node)
		c.version(cell.Node, &cell.Version)
		c.record(&cell.Record, true)
		c.is(cell.Taken)
	}
}

// restored codes what is left of a memory that is a copy.
func (c *coder) restored(m *Machine, win *few) {
	c.num(&win.used)
	c.flag(&win.sealed)
	if c.w.back {
		c.num(&m.most)
		c.num(&m.least)
	}
}

// place codes which names in a place are those of process i.
func (c *coder) place(i int, at *place) {
	p := &c.s.procs[i]
	r := at.record
	// The machine looks at the holder only if its own write may have been replaced.
	if c.is(r.Holder == p.m.Token() && (c.w.exact() || p.knows(r.Write) || p.m.held.Version != 0 && p.m.held.Node == at.node)) && c.load {
		r.Holder = p.m.token
	}
	name := func(x *string) { c.own(i, x, p.knows(*x)) }
	name(&r.Write)
	if c.w.kept == 0 || at.shared {
		return
	}
	for k := range c.w.kept {
		switch {
		case k < len(r.Last):
			name(&r.Last[k])
		default:
			c.byte(0)
		}
	}
}

// own codes a name in a place or a write: it is none of process i's, or one that came before, or
// its next one.
func (c *coder) own(i int, x *string, known bool) {
	which := 0
	if !c.load && known {
		if which = slices.Index(c.names, *x) + 1; which == 0 {
			which = len(c.names) + 1
		}
	}
	if which = int(c.byte(uint8(which))); which == 0 {
		return
	}
	if c.load && *x == "foreign" { // else it is that of a copy as well
		*x = own[i][len(c.names)]
		if which <= len(c.names) {
			*x = c.names[which-1]
		}
	}
	if which > len(c.names) {
		c.names = append(c.names, *x)
	}
}

// find returns the place of a version, or nil.
func (c *coder) find(node int64, version uint64) *place {
	for k := range c.places {
		if p := &c.places[k]; !p.shared && p.node == node && *p.version == version {
			return p
		}
	}
	return nil
}

// namesOf returns the names of the last writes of the cell with that version.
func (c *coder) namesOf(node int64, version uint64) []string {
	if p := c.find(node, version); p != nil {
		names := p.record.Names()
		return names[:min(len(names), c.w.kept)]
	}
	return nil
}

// list codes those names of a list that the process may meet.
func (c *coder) list(n int, at func(int) *string, add func(string)) {
	var names [8]*string
	met := 0
	for k := range n {
		if name := at(k); slices.Contains(c.names, *name) {
			names[met] = name
			met++
		}
	}
	for k := range int(c.byte(uint8(met))) {
		if c.load {
			var name string
			c.name(&name)
			add(name)
		} else {
			c.name(names[k])
		}
	}
}

// claims codes the claims of unknown outcome that may have landed, or may land.
func (c *coder) claims(i int) {
	m := &c.s.procs[i].m
	c.list(len(m.claims), func(k int) *string { return &m.claims[k].Name }, func(name string) {
		m.claims = append(m.claims, Pending{Name: name})
	})
	for k := range m.claims {
		if p := &m.claims[k]; slices.Contains(c.names, p.Name) {
			c.node(&p.Node)
			c.version(p.Node, &p.Version)
			c.num(&p.Floor)
		}
	}
}

// op codes an operation whose outcome a process waits for.
func (c *coder) op(p *proc) {
	o := &p.op
	if c.load {
		o.Kind = Swap
		o.Record = loaded
	}
	o.Why = Why(c.byte(uint8(o.Why)))
	c.node(&o.Node)
	c.version(o.Node, &o.Version)
	c.record(&o.Record, true)
	c.num(&o.Record.Floor)
	c.name(&o.Record.Write)
	if c.load && o.Record.Holder != "" {
		o.Record.Holder = p.m.token
	}
	p.fate = fate(c.byte(uint8(p.fate)))
	if p.fate == hasLanded {
		c.version(o.Node, &p.landed)
	}
}
