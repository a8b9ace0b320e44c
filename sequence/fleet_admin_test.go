package sequence_test

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// fault does something to the store, or to the sequence.
func (f *fleet) fault(kind fleettest.FaultKind, m *fleettest.Machine) {
	if kind == empty {
		f.Rewind(nil)
		return
	}
	at := slices.IndexFunc(f.all, func(o *process) bool { return o.Process == m.P && !o.Dead && !o.Closing && o.Ready() })
	if at < 0 {
		return
	}
	p := f.all[at]
	f.Tally["changes"]++
	p.Spawn("admin", func(t *fleettest.Thread) {
		ctx, end := t.Within(2 * f.Period)
		defer end()
		err := p.change(ctx, kind)
		t.Tracef("fault %d: %v", kind, err)
		if err != nil && !errors.Is(err, sequence.ErrLowered) && !errors.As(err, new(*stores.OptionError)) {
			p.expect(t, err)
		}
	})
}

// change changes a sequence while processes use it.
func (p *process) change(ctx context.Context, kind fleettest.FaultKind) error {
	f, r, store := p.f, p.f.cell.record, p.client()
	var c sequence.Change
	switch kind {
	case steps:
		c.MinStep = 1 + f.Rng.Int64N(16)
		c.MaxStep = c.MinStep << f.Rng.IntN(7)
	case raise:
		c.Next = max(1, r.Number(r.Next)+f.Between(-8, 24))
	case maximum:
		c.Max = max(1, r.LastNumber()+f.Between(-8, 64))
	case recreate:
		if _, err := sequence.Delete(ctx, store, name); err != nil {
			return err
		}
		return sequence.Create(ctx, store, name, f.definition)
	}
	_, _, err := sequence.Set(ctx, store, name, c)
	return err
}

// repairSequences starts an operator on a machine of its own.
func (f *fleet) repairSequences() {
	f.Boot()
	f.Machines[f.count].StartLater(f.Period / 2)
}

// operate raises a sequence that a process has marked, once the faults are over, and else its maximum, and does so again while processes may still find that the store went back.
func (p *process) operate() {
	f := p.f
	p.Spawn("operator", func(t *fleettest.Thread) {
		for f.Now < f.CalmSince+2*f.bound() {
			if err := repair(fleettest.Client{P: p.Process}, f.definition); err != nil && !errors.Is(err, stores.ErrConflict) && !errors.Is(err, sequence.ErrLowered) {
				f.Fail("operator", "cannot repair: %v", err)
			}
			t.Pass(f.bound() / 16)
		}
	})
}

// repair does as the docs say.
func repair(store stores.Store, d sequence.Definition) error {
	ctx := context.Background()
	info, err := sequence.Inspect(ctx, store, name)
	switch {
	case errors.Is(err, sequence.ErrNotFound):
		if err = sequence.Create(ctx, store, name, d); errors.As(err, new(*stores.OptionError)) {
			d.Max = 0 // none is left above the deleted one
			err = sequence.Create(ctx, store, name, d)
		}
		return err
	case err != nil:
		return err
	}
	if next, _ := info.Continued(); !info.WentBack && next.Max == 0 {
		return nil
	}
	c := sequence.Change{Max: math.MaxInt64}
	if info.WentBack {
		c.Next = max(info.Last+info.Definition.Stride.By(), 1) // 0 would change nothing
	}
	_, _, err = sequence.Set(ctx, store, name, c)
	return err
}
