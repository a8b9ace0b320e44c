package lease

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
)

// mutant breaks the protocol in a way in which others have got it wrong. What it does
// not replace is as it is.
type mutant struct {
	name string
	// seeds is within how many of them it must be caught.
	seeds int
	// faults are more frequent than they are drawn to be.
	faults []faultKind

	// store stands between the keeper and the store.
	store func(*process, Store) Store
	// grant is what the generator gets in place of what the keeper grants.
	grant func(*process, generator.Grant) generator.Grant
	// check is made before each call of the generator, and decides whether there is one.
	check func(*process, *thread) bool
	// unsealed keeps the keeper from sealing the generator.
	unsealed bool
	// close closes the process.
	close func(*process, *thread, context.Context) error
}

// TestFleetCatches makes sure that a simulation of each mutant comes upon an ID that
// is issued twice: that is what all of it is for. That the store's cells do not bear
// out what a process does is often seen earlier; it is logged which check sees it.
func TestFleetCatches(t *testing.T) {
	t.Cleanup(withQuickRecords())
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			earliest := map[string]uint64{}
			for seed := range uint64(m.seeds) {
				f := newFleet(seed, &m)
				f.keepGoing = true
				f.play()
				for _, v := range f.failures {
					if _, ok := earliest[v.What]; !ok {
						earliest[v.What] = seed
						t.Logf("seed %d: %s", seed, v)
					}
				}
				if _, ok := earliest["duplicate"]; ok {
					return
				}
			}
			require.Fail(t, "not caught", "%d seeds, and no ID is issued twice; other checks at seeds %v", m.seeds, earliest)
		})
	}
}

// unlimited takes the end of a grant away.
func unlimited(_ *process, g generator.Grant) generator.Grant {
	g.Limit, g.Renew = math.MaxUint64, math.MaxUint64
	return g
}

// rewriting changes the records that a process writes.
type rewriting struct {
	Store
	change func(old Cell, r *record)
}

func (s rewriting) Swap(ctx context.Context, old Cell, value []byte) (Cell, error) {
	r, err := decode(Cell{Value: value})
	if err != nil {
		panic(err)
	}
	s.change(old, &r)
	return s.Store.Swap(ctx, old, r.encode())
}

// retrying takes a write of unknown outcome for one that has failed.
type retrying struct{ Store }

func (s retrying) Swap(ctx context.Context, old Cell, value []byte) (Cell, error) {
	cell, err := s.Store.Swap(ctx, old, value)
	if err == nil || errors.Is(err, ErrConflict) {
		return cell, err
	}
	now, readErr := s.Store.Read(ctx, old.Node)
	if readErr != nil {
		return cell, err
	}
	return s.Store.Swap(ctx, now, value)
}

// tick is that of p's clock, without a pause for reading it.
func (p *process) clockTick() uint64 { return p.k.tickAt(p.m.wall()) }

// leftover is what is left of a grant, used without a keeper.
type leftover struct {
	*Keeper
	p     *process
	grant generator.Grant
}

func (l leftover) Bind(h generator.Holder) (generator.Grant, error) {
	l.p.holder = h
	return l.grant, nil
}
func (l leftover) Need()                                 {}
func (l leftover) Err() error                            { return nil }
func (l leftover) Release(context.Context, uint64) error { return nil }

// The numbers are those of the catalogue of faults; M1 to M4 and M6 to M8 are of the
// generator, and M10 of the files in a directory.
var mutants = []mutant{
	{
		// What a process issues is reported from time to time, and not before.
		name: "M2 the last tick is reported after the fact", seeds: 500,
		grant: unlimited,
		store: func(p *process, s Store) Store {
			return rewriting{s, func(_ Cell, r *record) {
				if r.Limit -= min(r.Limit, r.Window); p.holder != nil {
					r.Limit = max(r.Limit, p.holder.Tick())
				}
			}}
		},
	}, {
		name: "M5 the grant is checked before use, and not at use", seeds: 500,
		grant: unlimited,
		check: func(p *process, t *thread) bool {
			return max(p.clockTick(), p.holder.Tick()) < p.limit
		},
	}, {
		// It asks for the cell's version anew, and goes by what it knew of the rest.
		name: "M9 an unknown outcome is taken for a failure", seeds: 2000,
		store: func(_ *process, s Store) Store { return retrying{s} },
	}, {
		name: "M11 the release comes before the seal", seeds: 1000, faults: []faultKind{shutdown, shutdown, shutdown},
		unsealed: true,
		close: func(p *process, t *thread, ctx context.Context) error {
			p.cancelLoop()
			p.lock(t)
			err := p.k.Release(ctx, p.holder.Tick())
			p.unlock()
			t.pass(t.f.between(0, 3*t.f.period))
			return errors.Join(err, p.gen.CloseContext(ctx))
		},
	}, {
		name: "M11 a release of unknown outcome undoes the seal", seeds: 1000, faults: []faultKind{shutdown, shutdown, shutdown},
		close: func(p *process, t *thread, ctx context.Context) error {
			err := p.gen.CloseContext(ctx)
			if err == nil {
				return nil
			}
			grant := p.k.used
			grant.Floor, grant.Renew = p.holder.Tick(), grant.Limit
			if again, newErr := generator.New(generator.WithLease(leftover{p.k, p, grant}), generator.WithStrategy(p.strategy)); newErr == nil {
				p.gen, p.sealed = again, false
			}
			return err
		},
	}, {
		name: "M12 the floor of a claim is the clock", seeds: 500,
		grant: func(p *process, g generator.Grant) generator.Grant {
			g.Floor = min(g.Floor, p.clockTick())
			return g
		},
	}, {
		// What its own last ID is has no answer, and so the clock's tick stands in.
		name: "M13 a release with no ID issued goes below the floor", seeds: 2000, faults: []faultKind{shutdown, shutdown, stepLarge},
		store: func(p *process, s Store) Store {
			return rewriting{s, func(_ Cell, r *record) {
				if r.Holder == "" && p.first == 0 {
					r.Limit = min(r.Limit, p.clockTick())
				}
			}}
		},
	},
}
