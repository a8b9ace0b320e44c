package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// Periods issues numbers that begin anew each [Period], such as invoices that begin at 1 each year.
// Make one with [OpenPeriods] and share it: its methods are safe for use by any number of goroutines,
// and one is enough for a process. The zero Periods is not usable.
//
// Each period is a [Sequence] of its own: "orders.2027" is made when the first number of 2027 is asked
// for. What a Sequence promises holds for the numbers of one period.
type Periods struct {
	store   stores.Store
	name    string
	layout  string // or empty: names has the names
	names   func(time.Time) string
	options []Option

	// open has the periods in the order in which they were opened; nil: p is closed. A slice never changes: the
	// owner of the turn, or Close, replaces it.
	open atomic.Pointer[[]openPeriod]
	turn drive.Turn // its owner alone opens periods
}

type openPeriod struct {
	name string
	*Sequence
}

// MaxOpenPeriods is how many periods a [Periods] has open at once. The call that opens another one
// closes the one that was opened first.
const MaxOpenPeriods = 8

// WithPeriodNames gives [OpenPeriods] a function that returns the name of the period that an instant
// lies in: "fy27" for a fiscal year, "2027-w05" for a week. It returns the same name for the same
// instant in all processes, may be called by several goroutines at once, and its names have no dot and
// at most 32 characters.
func WithPeriodNames(of func(at time.Time) string) Option {
	return func(c *config) { c.names = of }
}

// OpenPeriods opens a sequence by period that exists, or, with [WithDefinition], creates it. All
// periods have its definition. The other options are those of each period's [Sequence].
//
// The error is an [*stores.OptionError] if an argument or option is out of range, and a
// [*DefinitionError] if the definition or the period is another one. Else it is one of [Open].
func OpenPeriods(ctx context.Context, store stores.Store, name string, period Period, options ...Option) (*Periods, error) {
	c, err := configure(store, name, options)
	if err != nil {
		return nil, err
	}
	if (c.names == nil) == (period.layout() == "") {
		return nil, &stores.OptionError{Option: "period", Err: fmt.Errorf("%q: want %s, %s or %s, or any other with WithPeriodNames", period, Yearly, Monthly, Daily)}
	}
	var found count.Cell
	if c.definition != nil {
		d := *c.definition
		d.Period = period
		found, err = c.create(ctx, d, creation{onDemand: true})
	} else {
		found, err = c.find(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case found.Record.Deleted:
		return nil, c.gone()
	case found.Record.Period != string(period):
		theirs := definitionOf(found.Record)
		ours := theirs
		ours.Period = period
		return nil, &DefinitionError{Name: name, Ours: ours, Theirs: theirs}
	}
	p := &Periods{store: store, name: name, layout: period.layout(), names: c.names, turn: drive.NewTurn()}
	p.options = append(options[:len(options):len(options)], func(c *config) { c.definition, c.named = nil, true })
	p.open.Store(new([]openPeriod))
	return p, nil
}

// Next returns the next number of the period that at lies in: at, and no clock, decides, in its own
// location. It waits for the store if the period is not open, and else as [Sequence.Next] does.
//
// The error is an [*stores.OptionError] if at has no period, as with a year of five digits. It wraps
// [ErrNotFound] if the period was deleted, which no call makes anew, or the definition was and the period
// was not made before. Else it is one of [Sequence.Next].
func (p *Periods) Next(ctx context.Context, at time.Time) (int64, error) { return p.NextN(ctx, at, 1) }

// NextN takes n numbers in a row of the period that at lies in, and returns the first, as
// [Sequence.NextN] does.
func (p *Periods) NextN(ctx context.Context, at time.Time, n int64) (first int64, err error) {
	var room [len("2006-01-02") + 8]byte // on the stack
	name := room[:0]
	if p.names == nil {
		name = at.AppendFormat(name, p.layout)
	} else {
		name = append(name, p.names(at)...)
	}
	s := p.find(name)
	if s != nil {
		if first, err = s.NextN(ctx, n); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrDeleted) {
			return first, err
		}
	}
	if err := checkCount(n); err != nil { // a period is not made for that
		return 0, err
	}
	// The owner of the turn takes its number before another call closes the period again.
	if err := p.turn.Take(ctx); err != nil {
		return 0, fmt.Errorf("sequence %q: no number before the call's context ended: another call opens a period: %w", p.name, err)
	}
	defer p.turn.Leave()
	for {
		opened, err := p.reopen(ctx, string(name), s)
		if err != nil {
			return 0, err
		}
		if first, err = opened.NextN(ctx, n); !errors.Is(err, ErrDeleted) {
			return first, err
		}
		s = opened // it was deleted since: opened once more, it is not found
	}
}

// reopen opens a period whose sequence is not open, or is gone. The caller has the turn.
func (p *Periods) reopen(ctx context.Context, name string, gone *Sequence) (*Sequence, error) {
	if p.names != nil { // one with a dot would be looked for under another sequence
		if err := Period("").check(name, true); err != nil {
			return nil, err
		}
	}
	if s := p.find([]byte(name)); s != nil && s != gone { // another call has opened it
		return s, nil
	}
	was := p.open.Load()
	if was == nil {
		return nil, ErrClosed
	}
	all := slices.DeleteFunc(slices.Clone(*was), func(o openPeriod) bool { return o.name == name })
	opened, err := Open(ctx, p.store, periodName(p.name, name), p.options...)
	if err == nil {
		all = append(all, openPeriod{name, opened})
		all = all[max(len(all)-MaxOpenPeriods, 0):]
	}
	if !p.open.CompareAndSwap(was, &all) {
		return nil, cmp.Or(err, ErrClosed) // what was opened has no numbers
	}
	for _, o := range *was {
		if !slices.Contains(all, o) {
			_ = o.CloseContext(ctx) // it logs what it cannot give back
		}
	}
	return opened, err
}

// find returns the sequence of a period if it is open.
func (p *Periods) find(name []byte) *Sequence {
	for _, o := range p.all() {
		if o.name == string(name) {
			return o.Sequence
		}
	}
	return nil
}

// all are the periods that are open.
func (p *Periods) all() []openPeriod {
	if all := p.open.Load(); all != nil {
		return *all
	}
	return nil
}

// Stats returns the counts of the periods that are open, by the names of the periods.
func (p *Periods) Stats() map[string]Stats {
	all := map[string]Stats{}
	for _, o := range p.all() {
		all[o.name] = o.Stats()
	}
	return all
}

// Restored is [Sequence.Restored] for the periods that are open.
func (p *Periods) Restored(ctx context.Context) error {
	var errs []error
	for _, o := range p.all() {
		if err := o.Restored(ctx); !errors.Is(err, ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close closes the periods that are open, as [Sequence.Close] does: no number is issued any more. The
// errors wrap [ErrNotGivenBack]. A second call does nothing and returns nil.
func (p *Periods) Close() error {
	var errs []error
	if all := p.open.Swap(nil); all != nil {
		for _, o := range *all {
			errs = append(errs, o.Close())
		}
	}
	return errors.Join(errs...)
}
