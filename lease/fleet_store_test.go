package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/stores"
)

// virtualStore keeps the cells of a run. A request arrives some time after it was
// sent, takes effect in that instant, and is answered some time later; any of that
// may fail to happen.
type virtualStore struct {
	f        *fleet
	keys     []string     // of the node numbers, and that of the layout after them
	cells    []storedCell // by the index of their keys
	versions uint64
	locks    map[string]*lockToken
	late     []*request // those that are, or were, held up
	backup   []storedCell
}

func newVirtualStore(f *fleet) *virtualStore {
	s := &virtualStore{f: f, locks: map[string]*lockToken{}}
	for node := range f.numbers() {
		s.keys = append(s.keys, protocol.NodeKey(node))
	}
	s.keys = append(s.keys, protocol.LayoutKey)
	s.cells = make([]storedCell, len(s.keys))
	return s
}

// index is that of a key.
func (s *virtualStore) index(key string) int64 {
	if node, ok := protocol.NodeOf(key); ok {
		return node
	}
	return int64(len(s.keys)) - 1
}

// rewind brings the cells of a backup back, and makes one for the next time. Of what was
// granted since, each process that holds it has it still, but the store knows nothing of
// it, and may grant it a second time.
func (s *virtualStore) rewind() {
	f := s.f
	if s.backup != nil {
		f.rewinds++
		f.tracef("store: goes back")
		for node := range f.numbers() {
			was, is := &s.cells[node], s.backup[node]
			f.rewound(node, was.limit, is.limit)
			*was = is
		}
	}
	s.backup = slices.Clone(s.cells)
}

// storedCell is a cell, and what it was before.
type storedCell struct {
	stores.Cell
	limit   uint64
	holder  bool
	earlier [2]stores.Cell
}

type lockToken struct{ by *process }

// client is a process's way to the store.
type client struct{ p *process }

// lockingClient is the same where the store knows who is alive.
type lockingClient struct{ client }

type requestKind uint8

const (
	listing requestKind = iota
	reading
	swapping
)

// request is an operation on its way.
type request struct {
	f       *fleet
	p       *process
	t       *thread // who waits for the reply, or nil
	kind    requestKind
	node    int64 // or the index of the layout's key
	from    string
	to      string
	version uint64
	value   []byte

	back    int64 // how long the reply takes, or -1 if there will be none
	arrived bool
	done    bool // the reply is there
	cell    stores.Cell
	cells   []stores.Cell
	err     error
}

var (
	errVirtual  = errors.New("fleet: no reply from the store")
	errVersion  = fmt.Errorf("fleet: another version: %w", stores.ErrConflict)
	errOccupied = fmt.Errorf("fleet: %w", stores.ErrLocked)
)

func (c client) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	r := &request{kind: listing, from: from, to: to}
	err := c.send(ctx, r)
	return r.cells[:min(len(r.cells), limit)], err
}

func (c client) Read(ctx context.Context, key string) (stores.Cell, error) {
	r := &request{kind: reading, node: c.p.f.store.index(key)}
	err := c.send(ctx, r)
	return r.cell, err
}

func (c client) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	r := &request{kind: swapping, node: c.p.f.store.index(key), version: version, value: value}
	err := c.send(ctx, r)
	return r.cell.Version, err
}

func (c client) Close() error { return nil }

// send sends a request, and waits for what comes of it.
func (c client) send(ctx context.Context, r *request) error {
	p := c.p
	f, t := p.f, p.f.current
	t.hiccup()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.f, r.p, r.t = f, p, t
	f.requests++
	p.requests++
	over := f.now + p.timeout
	there := f.between(1, f.latency)
	r.back = f.between(1, f.latency)
	fate := f.fate(p.m)
	if f.trace != nil {
		t.tracef("sends %s (%s)", r, fate)
	}
	switch fate {
	case served:
		f.at(there, r.arrive)
	case refused:
		t.pass(there)
		return errVirtual
	case lost:
	case unanswered:
		r.back = -1
		f.at(there, r.arrive)
	case late: // it comes when nobody waits for it any more
		r.holdUp(f.between(p.timeout, p.timeout+4*f.period))
	case veryLate:
		r.holdUp(1 << 60)
	case repeated: // the network delivers it twice
		again := *r
		f.at(there, r.arrive)
		again.holdUp(f.between(there, 4*f.period))
	case retried: // the driver sends it again, and tells only of the second time
		f.at(there, func() { r.effect(); r.arrive() })
	}
	for !r.done && f.now < over && ctx.Err() == nil && !t.dead {
		t.pass(over - f.now)
	}
	r.t = nil
	switch {
	case r.done:
	case ctx.Err() != nil:
		r.err = ctx.Err()
	default:
		r.err = errVirtual
	}
	if f.trace != nil {
		t.tracef("has %s: %v", r, r.err)
	}
	err := r.err
	if !r.done {
		r.cell, r.cells = stores.Cell{}, nil
	}
	t.hiccup()
	return err
}

// holdUp has a request that is not answered arrive in d, or when the faults are over
// if that is earlier.
func (r *request) holdUp(d int64) {
	r.back = -1
	r.f.store.late = append(r.f.store.late, r)
	r.f.at(d, r.arrive)
}

// arrive is when a request takes effect and is answered.
func (r *request) arrive() {
	if r.arrived {
		return
	}
	r.arrived = true
	r.effect()
	if r.back >= 0 && r.t != nil && r.f.reaches(r.p.m) {
		r.f.at(r.back, func() {
			if r.t != nil {
				r.done = true
				r.f.wake(r.t, 0)
			}
		})
	}
}

func (r *request) effect() {
	s := r.f.store
	r.err = nil
	switch r.kind {
	case listing:
		for i, key := range s.keys {
			cell := s.cells[i].Cell
			if cell.Version == 0 || key < r.from || key >= r.to {
				continue
			}
			if r.f.stale && r.f.often(128) { // a listing may be out of date
				if old := s.cells[i].earlier[r.f.rng.IntN(2)]; old.Version > 0 {
					cell = old
				}
			}
			r.cells = append(r.cells, cell)
		}
	case reading:
		r.cell = s.cells[r.node].Cell
		r.cell.Key = s.keys[r.node]
	case swapping:
		r.cell, r.err = s.swap(r)
	}
}

// swap is where the protocol's promises are checked, see checks.
func (s *virtualStore) swap(r *request) (stores.Cell, error) {
	f, cell := s.f, &s.cells[r.node]
	if cell.Version != r.version {
		return stores.Cell{}, errVersion
	}
	if r.t == nil {
		f.lateWrites++
	}
	if cell.Version != 0 {
		cell.earlier[1], cell.earlier[0] = cell.earlier[0], cell.Cell
	}
	s.versions++
	cell.Cell = stores.Cell{Key: s.keys[r.node], Version: s.versions, Value: r.value}
	if r.node == f.numbers() { // the layout
		return cell.Cell, nil
	}
	limit, holder := peek(r.value)
	f.landed(r.p, r.node, cell.limit, limit)
	cell.limit, cell.holder = limit, holder
	f.note(uint64(r.node)<<48 ^ limit)
	if f.trace != nil {
		f.tracef("store: cell %d has version %d by %s, limit %s, held %v", r.node, s.versions, r.p.name, f.tickText(limit), holder)
	}
	return cell.Cell, nil
}

// peek reads the limit of a record, and whether there is a holder, without the cost
// of decoding it.
func peek(value []byte) (limit uint64, holder bool) {
	const key = `"limit":`
	i := bytes.Index(value, []byte(key))
	digits := value[i+len(key):]
	n := bytes.IndexByte(digits, ',')
	limit, err := strconv.ParseUint(string(digits[:n]), 10, 64)
	if err != nil {
		panic(err)
	}
	return limit, bytes.Contains(value[:i], []byte(`"holder":`))
}

func (c lockingClient) TryLock(ctx context.Context, key string) (func(), error) {
	f, p := c.p.f, c.p
	f.current.hiccup()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if f.store.locks[key] != nil {
		return nil, errOccupied
	}
	token := &lockToken{p}
	f.store.locks[key] = token
	if f.trace != nil {
		f.current.tracef("locks %s", key)
	}
	return func() {
		if f.store.locks[key] == token {
			delete(f.store.locks, key)
		}
	}, nil
}

// fate is what becomes of a request.
type fate uint8

const (
	served fate = iota
	refused
	lost
	unanswered
	late
	veryLate
	repeated
	retried
)

func (x fate) String() string {
	return [...]string{"served", "refused", "lost", "unanswered", "late", "very late", "repeated", "retried"}[x]
}

// fate draws what becomes of a request of m.
func (f *fleet) fate(m *machine) fate {
	if f.calm {
		return served
	}
	r := f.rng.Uint64()
	if !f.reaches(m) {
		return [...]fate{refused, lost, late, veryLate}[r&3]
	}
	if r>>8&1023 >= f.pStore {
		return served
	}
	return f.fates[r>>20%uint64(len(f.fates))]
}

// reaches reports whether the store and m reach each other.
func (f *fleet) reaches(m *machine) bool { return f.now >= m.cut && f.now >= f.away }

func (r *request) String() string {
	switch r.kind {
	case listing:
		return "list"
	case reading:
		return fmt.Sprintf("read %d", r.node)
	}
	if r.node == r.f.numbers() {
		return "swap of the layout"
	}
	limit, holder := peek(r.value)
	return fmt.Sprintf("swap %d, version %d, limit %s, held %v", r.node, r.version, r.f.tickText(limit), holder)
}

// tickText shows a tick as the time from the start of the run, by a true clock.
func (f *fleet) tickText(tick uint64) string {
	at := f.layout.Epoch.Add(time.Duration(tick) * f.layout.Tick)
	return fmt.Sprintf("%d (%s)", tick, at.Sub(fleetStart))
}
