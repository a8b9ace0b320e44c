package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestFleetPast has an operator give numbers to the past beside the processes of a fleet, and often move it afterwards.
// Other processes issue the IDs of old rows, of the times at which the first ones issue theirs.
func TestFleetPast(t *testing.T) {
	sums, usual := testFleet(t, 150, setup{operated: true})
	for _, what := range []string{"old rows", "given", "gifts that were refused", "gifts that were cut off", "operators that crashed amid a gift", "old rows after a move", "full",
		"moves", "moves that were cut off", "numbers that begin later", "IDs of a new site"} {
		require.True(t, sums[what] > 0 || !usual, what)
	}
}

// oldRows is what a run knows of the past.
type oldRows struct {
	giving cell.Nodes // what the operator gives
	lanes  lease.Past // how
	given  map[int64]bool
	unit   time.Duration
}

// drawPast draws the numbers that the operator will give. There are more than processes, so that some were never used.
func (f *fleet) drawPast() {
	f.layout.NodeBits = 2 + f.rng.IntN(3)
	all := f.numbers()
	f.count = 1 + f.rng.IntN(int(all))/2
	f.given = map[int64]bool{}
	f.giving = cell.Nodes{From: f.rng.Int64N(all), To: all}
	ticks := int64(f.period / f.layout.Tick)
	f.lanes = lease.Past{Bucket: time.Duration(1+f.rng.Int64N(ticks)) * f.layout.Tick, Lane: 1 << f.rng.IntN(f.layout.SequenceBits+1)}
	f.unit = time.Duration(f.rng.IntN(4)) * f.layout.Tick
}

// sites are the stores of a run.
type sites struct {
	stores []*storetest.Memory
	has    []cell.Nodes // that each was founded with
	moves  []move
	moved  int // of moves, those that are done
}

// move is one that an operator makes.
type move struct {
	from, to int // sites
	nodes    cell.Nodes
}

// drawSites draws what the operator will do.
func (f *fleet) drawSites() {
	f.sites = sites{stores: []*storetest.Memory{storetest.NewMemory()}, has: []cell.Nodes{{To: f.numbers()}, {}, {}}}
	if !f.operated {
		return
	}
	f.drawPast()
	f.stores = append(f.stores, storetest.NewMemory(), storetest.NewMemory())
	all := cell.Nodes{To: f.numbers()}
	if f.has[0] = all; f.often(512) {
		return
	}
	low, high := cell.Nodes{To: all.To / 2}, cell.Nodes{From: all.To / 2, To: all.To}
	plans := [][]move{{{0, 1, all}}, {{0, 1, all}, {1, 2, all}}, {{0, 1, high}, {0, 2, low}}, {{0, 1, high}, {1, 2, high}}, {{0, 1, all}, {1, 2, low}}}
	f.moves = plans[f.rng.IntN(len(plans))]
}

// operate gives numbers to the past, and then makes the moves of a run. Each try is a process of its own, which may die in
// its middle: the next one begins anew.
func (f *fleet) operate(m *machine) {
	for time.Sleep(f.between(0, 3*f.period)); !is(f, &f.over); time.Sleep(f.between(0, 3*f.period)) {
		p := f.process(m)
		switch {
		case len(f.given) == 0 && f.giving.From < f.giving.To:
			f.give(p)
		case f.moved < len(f.moves):
			f.move(p, f.moves[f.moved])
		}
		p.end()
	}
}

// give gives numbers to the past.
func (f *fleet) give(p *process) {
	past := f.lanes
	past.From, past.To = f.giving.From, f.giving.To-1
	err := lease.GivePast(context.Background(), f.way(p, 0), past, p.options()...)
	f.tracef("gives %+v: %v", past, err)
	switch refused, _ := errors.AsType[*stores.OptionError](err); {
	case err == nil:
		f.counts("given", 1)
		f.mu.Lock()
		for node := past.From; node <= past.To; node++ {
			f.given[node] = true
		}
		f.mu.Unlock()
	case refused != nil && refused.Option == "GivePast":
		f.counts("gifts that were refused", 1)
		f.giving.From++
	case is(f, &p.dead):
		f.counts("operators that crashed amid a gift", 1)
	case errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict):
		f.counts("gifts that were cut off", 1)
	default:
		f.fail("error", "the gift %+v: %T %v", past, err, err)
	}
}

func (f *fleet) move(p *process, m move) {
	fleet, err := lease.EndFleet(context.Background(), f.way(p, m.from), m.nodes.From, m.nodes.To-1, "elsewhere", p.options()...)
	if err == nil {
		f.counts("numbers that begin later", len(fleet.Later))
		f.mu.Lock()
		f.has[m.to] = m.nodes
		f.mu.Unlock()
		err = lease.SetFleet(context.Background(), f.way(p, m.to), fleet, p.options()...)
	}
	f.tracef("moves %+v: %v", m, err)
	founded := f.stores[m.to].Peek(cell.FleetKey).Version != 0
	switch refused, _ := errors.AsType[*stores.OptionError](err); {
	case err == nil, refused != nil && refused.Option == "SetFleet" && founded: // by what an earlier operator was told
		f.counts("moves", 1)
		f.mu.Lock()
		f.moved++
		f.mu.Unlock()
	case errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict), errors.Is(err, lease.ErrSkew), errors.Is(err, lease.ErrNeverClaimed), refused != nil && refused.Option == "WithLayout":
		f.counts("moves that were cut off", 1)
	default:
		f.fail("error", "the move %+v: %T %v", m, err, err)
	}
}

// options are those of an operator.
func (p *process) options() []lease.Option {
	w := max(p.f.longest, 6*p.f.layout.Tick)
	return []lease.Option{lease.WithLayout(p.f.layout), lease.WithClock(clock{p.m.clock, p}), lease.WithWindow(w), lease.WithTimeout(p.timeout), lease.WithLogger(p.f.log(p.name))}
}

// archives has the stores of the processes that issue the IDs of old rows, by their URLs.
var archives sync.Map

func init() {
	stores.Register("archive", func(_ context.Context, url string) (stores.Store, error) {
		store, _ := archives.Load(url)
		return store.(*way), nil
	})
}

// archive has one process after the other issue IDs of old rows, as soon as there is a past.
func (f *fleet) archive(m *machine) {
	for !is(f, &f.over) {
		p := f.process(m)
		url := fmt.Sprintf("archive://%p", p)
		var old *generator.Past
		for old == nil && !is(f, &p.dead) {
			time.Sleep(f.between(0, f.period))
			archives.Store(url, f.way(p, 0)) // OpenPast closes it if it fails
			var err error
			old, err = generator.OpenPast(p.ctx, url, generator.WithClock(m.clock), generator.WithPastUnit(f.unit),
				generator.WithPastMemory(1024*(1+int(f.between(0, 6)))), generator.WithLogger(f.log(p.name)))
			if err != nil && !errors.Is(err, generator.ErrNoPast) && !errors.Is(err, lease.ErrNeverClaimed) && !errors.Is(err, storetest.ErrFault) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				f.fail("error", "%s cannot open the past: %T %v", p.name, err, err)
			}
		}
		for old != nil && !is(f, &p.dead) {
			time.Sleep(f.between(1, f.think))
			if f.often(16) {
				old.Restored()
			}
			f.row(p, old)
		}
		if old != nil {
			_ = old.Close()
		}
		p.end()
		archives.Delete(url)
	}
}

// row issues the ID of a row.
func (f *fleet) row(p *process, old *generator.Past) {
	at := noon.Add(f.between(0, min(time.Since(f.began), 6*f.period)))
	id, err := old.At(p.ctx, at)
	f.tracef("%s: row of %s: ID %d, %v", p.name, at.Sub(noon), id, err)
	switch {
	case errors.Is(err, generator.ErrPastFull):
		f.counts("full", 1)
		return
	case errors.Is(err, generator.ErrNotPast), errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict), errors.Is(err, context.Canceled):
		return
	case err != nil:
		f.fail("error", "%s: %T %v", p.name, err, err)
		return
	}
	f.mu.Lock()
	again := f.ids[id]
	f.ids[id] = true
	if f.tally["old rows"]++; f.moved > 0 {
		f.tally["old rows after a move"]++
	}
	f.mu.Unlock()
	if again {
		f.fail("duplicate", "%s gives a row of %s the ID %d, a second time", p.name, at, id)
	}
	if d := must(f.layout.Decode(id)); d.Time.Sub(at).Abs() > max(f.unit, f.layout.Tick) {
		f.fail("another time", "%s gives a row of %s the ID %d, of %s", p.name, at, id, d.Time)
	}
}
