package lease_test

import (
	"errors"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

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
