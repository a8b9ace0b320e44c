package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

// TestFleetPast has an operator give numbers to the past beside the processes of a fleet, and often move it afterwards.
// Other processes issue the IDs of old rows, of the times at which the first ones issue theirs.
func TestFleetPast(t *testing.T) {
	sums := fleettest.Test(t, 150, func(seed uint64) *fleet { return newFleet(seed, setup{operated: true}) })
	for _, what := range []string{"old rows", "given", "gifts that were refused", "gifts that were cut off", "operators that crashed amid a gift", "old rows after a move", "full",
		"moves", "moves that were cut off", "numbers that begin later", "IDs of a new site"} {
		require.Positive(t, sums[what], what)
	}
}

// oldRows is what a run knows of the past.
type oldRows struct {
	giving cell.Nodes // what the operator gives
	lanes  lease.Past // how
	amid   int        // operators that have begun, and not ended, a gift
	given  map[int64]bool
	unit   time.Duration
}

// drawPast draws the numbers that the operator will give. There are more than processes, so that some were never used.
func (f *fleet) drawPast() {
	f.layout.NodeBits = 2 + f.Rng.IntN(3)
	all := f.numbers()
	f.count = 1 + f.Rng.IntN(int(all))/2
	f.given = map[int64]bool{}
	f.giving = cell.Nodes{From: f.Between(0, all), To: all}
	ticks := time.Duration(f.Period) / f.layout.Tick
	f.lanes = lease.Past{Bucket: (1 + time.Duration(f.Rng.Int64N(int64(ticks)))) * f.layout.Tick, Lane: 1 << f.Rng.IntN(f.layout.SequenceBits+1)}
	f.unit = time.Duration(f.Rng.IntN(4)) * f.layout.Tick
}

// give gives numbers to the past.
func (o *operator) give(t *fleettest.Thread) {
	f := o.f
	f.Tally["operators that crashed amid a gift"] += f.amid
	for f.amid = 1; f.giving.From < f.giving.To && len(f.given) == 0; t.Pass(f.Between(0, f.Period)) {
		p := f.lanes
		p.From, p.To = f.giving.From, f.giving.To-1
		ctx, end := t.Within(fleettest.Never)
		err := lease.GivePast(ctx, o.client(0), p, o.options()...)
		end()
		t.Tracef("gives %+v: %v", p, err)
		switch refused, _ := errors.AsType[*stores.OptionError](err); {
		case err == nil:
			f.Tally["given"]++
			for node := p.From; node <= p.To; node++ {
				f.given[node] = true
			}
		case refused != nil && refused.Option == "GivePast":
			f.Tally["gifts that were refused"]++
			f.giving.From++
		case errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict):
			f.Tally["gifts that were cut off"]++
		default:
			f.Fail("error", "the gift %+v: %T %v", p, err, err)
		}
	}
	f.amid = 0
}

// sites are the stores of a run, which are parts of one, with a prefix of their keys.
type sites struct {
	stores int
	open   []bool       // the fleet's cell was written: processes may start on it
	has    []cell.Nodes // that it was founded with
	moves  []move
	moved  int // of moves, those that are done
}

// move is one that an operator makes.
type move struct {
	from, to int // sites
	nodes    cell.Nodes
}

func prefix(site int) string { return strings.Repeat("/", site) }

// drawSites draws what the operator will do.
func (f *fleet) drawSites() {
	f.sites = sites{stores: 1, open: []bool{true, false, false}, has: []cell.Nodes{{To: f.numbers()}, {}, {}}}
	if !f.operated {
		return
	}
	f.drawPast()
	all := cell.Nodes{To: f.numbers()}
	if f.stores, f.has[0] = 3, all; f.Often(512) {
		return
	}
	low, high := cell.Nodes{To: all.To / 2}, cell.Nodes{From: all.To / 2, To: all.To}
	plans := [][]move{{{0, 1, all}}, {{0, 1, all}, {1, 2, all}}, {{0, 1, high}, {0, 2, low}}, {{0, 1, high}, {1, 2, high}}, {{0, 1, all}, {1, 2, low}}}
	f.moves = plans[f.Rng.IntN(len(plans))]
}

// operator makes the moves of a run. What it knows of them ends with its process, so the next one begins
// the move again.
type operator struct {
	*fleettest.Process
	f *fleet
}

func (o *operator) Ready() bool                  { return true }
func (o *operator) Close(*fleettest.Thread) bool { return true }
func (o *operator) Restored(*fleettest.Thread)   {}
func (o *operator) Step()                        {}

// Main makes the moves that are left.
func (o *operator) Main(t *fleettest.Thread) {
	f := o.f
	o.give(t)
	for t.Pass(f.Between(0, 3*f.Period)); f.moved < len(f.moves); t.Pass(f.Between(0, 3*f.Period)) {
		i := f.moved // another operator may be at it, too
		m := f.moves[i]
		ctx, end := t.Within(fleettest.Never)
		fleet, err := lease.EndFleet(ctx, o.client(m.from), m.nodes.From, m.nodes.To-1, "elsewhere", o.options()...)
		if err == nil {
			f.Tally["numbers that begin later"] += len(fleet.Later)
			f.has[m.to] = m.nodes
			err = lease.SetFleet(ctx, o.client(m.to), fleet, o.options()...)
		}
		end()
		t.Tracef("moves %+v: %v", m, err)
		switch refused, _ := errors.AsType[*stores.OptionError](err); {
		case f.moved > i: // the other one was faster
		case err == nil, refused != nil && refused.Option == "SetFleet" && f.open[m.to]: // by what an earlier operator was told
			f.Tally["moves"]++
			f.moved = max(f.moved, i+1)
		case errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict), errors.Is(err, lease.ErrSkew), errors.Is(err, lease.ErrNeverClaimed), refused != nil && refused.Option == "WithLayout":
			f.Tally["moves that were cut off"]++
		default:
			f.Fail("error", "the move %+v: %T %v", m, err, err)
		}
	}
}

func (o *operator) client(site int) stores.Store {
	return fleettest.Client{P: o.Process, Prefix: prefix(site)}
}

func (o *operator) options() []lease.Option {
	w := max(time.Duration(o.f.longest), 6*o.f.layout.Tick)
	return []lease.Option{lease.WithLayout(o.f.layout), lease.WithClock(fleettest.Clock{P: o.Process}), lease.WithWindow(w), lease.WithTimeout(time.Hour), lease.WithLogger(o.Log())}
}

// archivist is a process that issues the IDs of old rows.
type archivist struct {
	*fleettest.Process
	f    *fleet
	old  *generator.Past
	busy bool // a caller is in the Past; a thread that waited for its real turn would stop all of them
}

// archives has the stores of the archivists by their URLs.
var archives sync.Map

func init() {
	stores.Register("archive", func(_ context.Context, url string) (stores.Store, error) {
		store, _ := archives.Load(url)
		return store.(stores.Store), nil
	})
}

func (a *archivist) Ready() bool                  { return a.old != nil }
func (a *archivist) Close(*fleettest.Thread) bool { return a.old.Close() == nil }
func (a *archivist) Restored(*fleettest.Thread)   { a.old.Restored() }
func (a *archivist) Step()                        {}

// Main opens the past as soon as there is one.
func (a *archivist) Main(t *fleettest.Thread) {
	f, url := a.f, fmt.Sprintf("archive://%p", a)
	archives.Store(url, stores.Store(fleettest.Client{P: a.Process}))
	defer archives.Delete(url)
	for a.old == nil {
		t.Pass(f.Between(0, f.Period))
		old, err := generator.OpenPast(context.Background(), url, generator.WithClock(fleettest.Clock{P: a.Process}),
			generator.WithPastUnit(f.unit), generator.WithPastMemory(1024*(1+f.Rng.IntN(6))))
		if a.old = old; err != nil && !errors.Is(err, generator.ErrNoPast) && !errors.Is(err, lease.ErrNeverClaimed) && !errors.Is(err, fleettest.ErrNoReply) {
			f.Fail("error", "%s cannot open the past: %T %v", a.Name, err, err)
		}
	}
	for i := range 1 + f.Rng.IntN(3) {
		a.Issue("importer "+strconv.Itoa(i), a.issue)
	}
}

// issue issues the ID of a row.
func (a *archivist) issue(t *fleettest.Thread, _ int) error {
	f := a.f
	t.Await(func() bool { return !a.busy })
	a.busy = true
	defer func() { a.busy = false }()
	at := fleettest.Start.Add(time.Duration(f.Between(0, min(f.Now, 6*f.Period))))
	id, err := a.old.At(context.Background(), at)
	t.Tracef("row of %s: ID %d, %v", at.Sub(fleettest.Start), id, err)
	switch {
	case errors.Is(err, generator.ErrPastFull):
		f.Tally["full"]++
		return err
	case errors.Is(err, generator.ErrNotPast), errors.Is(err, generator.ErrClosed), errors.Is(err, lease.ErrStore), errors.Is(err, stores.ErrConflict):
		return err
	case err != nil:
		f.Fail("error", "%s: %T %v", a.Name, err, err)
		return err
	}
	f.Tally["old rows"]++
	if f.moved > 0 {
		f.Tally["old rows after a move"]++
	}
	if _, ok := f.ids[id]; ok {
		f.Fail("duplicate", "%s gives a row of %s the ID %d, a second time", a.Name, at, id)
	}
	f.ids[id] = struct{}{}
	d := must(f.layout.Decode(id))
	if off := d.Time.Sub(at); off.Abs() > max(f.unit, f.layout.Tick) {
		f.Fail("another time", "%s gives a row of %s the ID %d, of %s", a.Name, at, id, d.Time)
	}
	return nil
}
