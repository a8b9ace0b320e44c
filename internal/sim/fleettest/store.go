package fleettest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tickflake/tickflake/stores"
)

// Store keeps the cells of a run. A request arrives some time after it was
// sent, takes effect in that instant, and is answered some time later; any of that
// may fail to happen.
type Store struct {
	// Landed is told of each write that takes effect. p made it.
	Landed func(p *Process, key string, value []byte)
	// Rewound is told of each cell of a store that went back. A nil value is no cell.
	Rewound func(key string, value []byte)

	cells    map[string]storedCell // also those that the store has lost
	versions uint64
	backup   map[string]storedCell
	locks    map[string]*Process
}

// storedCell is a cell, and what it was before, the latest first.
type storedCell struct {
	stores.Cell
	earlier [12]stores.Cell
}

// stale returns an earlier state of the cell, of the last most ones; there may have been no cell.
func (c *storedCell) stale(f *Fleet, most int) stores.Cell {
	if c.Version == 0 {
		return c.Cell
	}
	f.Tally["stale reads"]++
	return c.earlier[f.Rng.IntN(most)]
}

// Rewind brings the cells of a backup back, or nothing. Of the grants since, each process that holds one has it
// still, but the store knows nothing of it, and may grant it a second time.
func (f *Fleet) Rewind(backup map[string]storedCell) {
	f.Tally["rewinds"]++
	f.Tracef("store: goes back to %d cells", len(backup))
	for key := range f.Store.cells {
		f.Store.Rewound(key, backup[key].Value)
		f.Store.cells[key] = backup[key]
	}
}

// Client is a process's way to the store.
type Client struct {
	P     *Process
	Locks bool // the store has locks, which end with the process
}

// request is an operation on its way.
type request struct {
	f      *Fleet
	p      *Process
	t      *Thread              // who waits for the reply, or nil
	effect func(*request) reply // is what it does when it arrives

	back    int64 // how long the reply takes, or -1 if there will be none
	arrived bool
	reply   *reply // that is there
}

// reply is what a request is answered.
type reply struct {
	cell  stores.Cell
	cells []stores.Cell
	err   error
}

var (
	// ErrNoReply is the error of a request that failed, or whose answer was lost.
	ErrNoReply = errors.New("fleet: no reply from the store")

	errVersion = fmt.Errorf("fleet: another version: %w", stores.ErrConflict)
)

// List is that of [stores.Store].
func (c Client) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	r := c.send(ctx, "list", func(r *request) (list reply) {
		for _, key := range slices.Sorted(maps.Keys(r.f.Store.cells)) {
			stored := r.f.Store.cells[key]
			if stored.Version == 0 || key < from || key >= to {
				continue
			}
			if r.f.Stale && r.f.Often(128) { // a listing may be out of date
				if old := stored.stale(r.f, 2); old.Version > 0 {
					stored.Cell = old
				}
			}
			stored.Key = key
			list.cells = append(list.cells, stored.Cell)
		}
		return list
	})
	return r.cells[:min(len(r.cells), limit)], r.err
}

// Read is that of [stores.Store].
func (c Client) Read(ctx context.Context, key string) (stores.Cell, error) {
	r := c.send(ctx, "read "+key, func(r *request) reply {
		stored := r.f.Store.cells[key]
		if !r.f.Calm && r.f.PStale > 0 && r.f.Often(r.f.PStale) {
			stored.Cell = stored.stale(r.f, len(stored.earlier))
		}
		stored.Key = key
		return reply{cell: stored.Cell}
	})
	return r.cell, r.err
}

// Swap is that of [stores.Store].
func (c Client) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	what := "swap " + key
	if c.P.F.Trace != nil {
		what = fmt.Sprintf("%s, version %d, %s", what, version, value)
	}
	r := c.send(ctx, what, func(r *request) reply { return r.swap(key, version, value) })
	return r.cell.Version, r.err
}

// Close does nothing.
func (c Client) Close() error { return nil }

// Traits has the locks, if there are some.
func (c Client) Traits() stores.Traits {
	if c.Locks {
		return stores.Traits{TryLock: c.tryLock}
	}
	return stores.Traits{}
}

func (c Client) tryLock(ctx context.Context, key string) (func(), error) {
	locks := c.P.F.Store.locks
	c.P.F.Current.Hiccup()
	switch by := locks[key]; {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case by != nil && !by.Dead:
		return nil, fmt.Errorf("fleet: %w", stores.ErrLocked)
	}
	locks[key] = c.P
	return func() {
		if locks[key] == c.P {
			delete(locks, key)
		}
	}, nil
}

// Retrying is the mutant of a client that takes a write of unknown outcome for one that has
// failed, and makes it once more with the version that it finds.
type Retrying struct{ stores.Store }

// Swap is that of [stores.Store].
func (s Retrying) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := s.Store.Swap(ctx, key, version, value)
	if err == nil || errors.Is(err, stores.ErrConflict) {
		return now, err
	}
	cell, readErr := s.Store.Read(ctx, key)
	if readErr != nil {
		return now, err
	}
	return s.Store.Swap(ctx, key, cell.Version, value)
}

// send sends a request, and waits for what comes of it.
func (c Client) send(ctx context.Context, what string, effect func(*request) reply) (got reply) {
	p := c.P
	f, t := p.F, p.F.Current
	t.Hiccup()
	if ctx.Err() != nil {
		return reply{err: ctx.Err()}
	}
	f.Tally["requests"]++
	over := f.Now + p.Timeout
	there := f.Between(1, f.Latency)
	r := &request{f: f, p: p, t: t, effect: effect, back: f.Between(1, f.Latency)}
	fate := f.fate(p.M)
	t.Tracef("sends %s (%s)", what, fate)
	switch fate {
	case Served:
		f.At(there, r.arrive)
	case Refused:
		t.Pass(there)
		return reply{err: ErrNoReply}
	case Lost:
	case Unanswered:
		r.back = -1
		f.At(there, r.arrive)
	case Late: // it comes when its sender waits for it no more
		r.holdUp(f.Between(p.Timeout, p.Timeout+4*f.Period))
	case VeryLate:
		r.holdUp(1 << 60)
	case Repeated: // the network delivers it twice
		again := *r
		f.At(there, r.arrive)
		again.holdUp(f.Between(there, 4*f.Period))
	case Retried: // the driver sends it again, and tells only of the second time
		f.At(there, func() { r.effect(r); r.arrive() })
	}
	for r.reply == nil && f.Now < over && ctx.Err() == nil && !t.dead {
		t.Pass(over - f.Now)
	}
	r.t = nil
	switch {
	case r.reply != nil:
		got = *r.reply
	case ctx.Err() != nil:
		got.err = ctx.Err()
	default:
		got.err = ErrNoReply
	}
	t.Tracef("has %s: %v", what, got.err)
	t.Hiccup()
	return got
}

// holdUp has a request that is not answered arrive in d, or when the faults are over
// if that is earlier.
func (r *request) holdUp(d int64) {
	r.back = -1
	r.f.late = append(r.f.late, r)
	r.f.At(d, r.arrive)
}

// arrive is when a request takes effect and is answered.
func (r *request) arrive() {
	if r.arrived {
		return
	}
	r.arrived = true
	answer := r.effect(r)
	if r.back >= 0 && r.t != nil && r.f.reaches(r.p.M) {
		r.f.At(r.back, func() {
			if r.t != nil {
				r.reply = &answer
				r.t.Wake(0)
			}
		})
	}
}

// swap is where a simulation checks the promises of its protocol, see Landed.
func (r *request) swap(key string, expected uint64, value []byte) reply {
	f, s := r.f, r.f.Store
	stored := s.cells[key]
	if stored.Version != expected {
		return reply{err: errVersion}
	}
	if r.t == nil {
		f.Tally["late writes"]++
	}
	if stored.Version != 0 {
		copy(stored.earlier[1:], stored.earlier[:])
		stored.earlier[0] = stored.Cell
	}
	s.versions++
	stored.Cell = stores.Cell{Key: key, Version: s.versions, Value: value}
	s.cells[key] = stored
	s.Landed(r.p, key, value)
	f.Tracef("store: %s has version %d by %s, %s", key, s.versions, r.p.Name, value)
	return reply{cell: stored.Cell}
}

// Fate is what becomes of a request.
type Fate uint8

// The fates.
const (
	Served Fate = iota
	Refused
	Lost
	Unanswered
	Late
	VeryLate
	Repeated
	Retried
)

// AllFates are all but Served.
func AllFates() []Fate { return []Fate{Refused, Lost, Unanswered, Late, VeryLate, Repeated, Retried} }

func (x Fate) String() string {
	return [...]string{"served", "refused", "lost", "unanswered", "late", "very late", "repeated", "retried"}[x]
}

// fate draws what becomes of a request of m.
func (f *Fleet) fate(m *Machine) Fate {
	if f.Calm {
		return Served
	}
	r := f.Rng.Uint64()
	if !f.reaches(m) {
		return [...]Fate{Refused, Lost, Late, VeryLate}[r&3]
	}
	if r>>8&1023 >= f.PStore {
		return Served
	}
	return f.Fates[r>>20%uint64(len(f.Fates))]
}

// reaches reports whether the store and m reach each other.
func (f *Fleet) reaches(m *Machine) bool { return f.Now >= m.cut && f.Now >= f.Away }
