package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/stores"
)

// Periods issues numbers that begin anew each [Period], such as invoices that begin at 1 each year.
// Make one with [OpenPeriods] and share it: its methods are safe for use by any number of goroutines,
// and one is enough for a process. The zero Periods is not usable.
//
// Each period is a [Sequence] of its own: "orders.2027" is made when the first number of 2027 is asked
// for. What a Sequence promises holds for the numbers of one period. It has goroutines only while it opens
// or closes periods, and has at most eight open: a call that opens another one closes the one whose last use is the
// longest ago.
type Periods struct {
	store   stores.Store
	name    string
	period  Period
	layout  string // of the period, or empty: it has a function
	options []Option

	// open has the periods that are open, in the order in which they were opened; nil: p is closed. A slice never
	// changes: who has mu replaces it.
	open atomic.Pointer[[]*openPeriod]
	// opened counts the periods that were opened. It only grows, and who has mu writes it.
	opened atomic.Uint64

	mu      sync.Mutex             // guards the fields below; nobody calls the store with it
	opening map[string]*openPeriod // that are not open yet
	ending  map[string]*openPeriod // that were closed for others, and give their numbers back
	last    []*openPeriod          // that were open at Close
	failure error                  // of the store, when a period was opened last

	ctx    context.Context // of what opens periods
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutines; who has mu starts one, and none once p is closed
	end    drive.Ending
}

// openPeriod is a period that is open, or about to be.
type openPeriod struct {
	name      string
	ready     chan struct{} // closed once the next two are set
	*Sequence               // or nil
	failed    error
	used      atomic.Uint64 // Periods.opened when a call last took a number: a later use has no lower one
}

const maxOpenPeriods = 8

// OpenPeriods opens a sequence by period that exists, or, with [WithDefinition], creates it. All
// periods have its definition, which need not name the period again. The other options are those of each
// period's [Sequence].
//
// The error is an [*stores.OptionError] if an argument or option is out of range, and a
// [*DefinitionError] if the definition or the period is another one. Else it is one of [Open].
func OpenPeriods(ctx context.Context, store stores.Store, name string, period Period, options ...Option) (*Periods, error) {
	c, err := configure(store, name, options)
	if err != nil {
		return nil, err
	}
	if (period.names == nil) == (period.layout() == "") {
		return nil, &stores.OptionError{Option: "period", Err: fmt.Errorf("%q: want Yearly, Monthly or Daily, or NewPeriod with another kind and a function", period)}
	}
	var found count.Cell
	if c.definition != nil {
		d := *c.definition
		if d.Period != (Period{}) && d.Period.text != period.text {
			return nil, &stores.OptionError{Option: "WithDefinition", Err: fmt.Errorf("it is by period, %s, and the period to open is %s: leave one out", d.Period, period)}
		}
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
	case found.Record.Period != period.text:
		theirs := definitionOf(found.Record)
		ours := theirs
		ours.Period = period
		return nil, &DefinitionError{Name: name, Ours: ours, Theirs: theirs}
	}
	p := &Periods{
		store: store, name: name, period: period, layout: period.layout(),
		opening: map[string]*openPeriod{}, ending: map[string]*openPeriod{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.options = append(options[:len(options):len(options)], func(c *config) { c.definition, c.named = nil, true })
	p.open.Store(new([]*openPeriod))
	return p, nil
}

// Next returns the next number of the period that at lies in, by at's own location and no clock. If the period
// is not open, Next first opens it; without a deadline, that takes at most two timeouts of [WithTimeout] after
// the last answer of the store. It never waits for another period. Else it is as [Sequence.Next].
//
// The error is an [*stores.OptionError] if at is the zero time, or has no period, as with a year of five digits. It wraps
// [ErrNotFound] if the period was deleted, or if its sequence was deleted before the period was made. Else it
// is one of Sequence.Next.
func (p *Periods) Next(ctx context.Context, at time.Time) (int64, error) { return p.NextN(ctx, at, 1) }

// NextN takes n numbers in a row of the period that at lies in, and returns the first, as
// [Sequence.NextN] does.
func (p *Periods) NextN(ctx context.Context, at time.Time, n int64) (first int64, err error) {
	if at.IsZero() { // a forgotten field would make the period "0001", for good
		return 0, &stores.OptionError{Option: "at", Err: errors.New("it is the zero time: give the time by which the number is counted")}
	}
	var room [len("2006-01-02") + 8]byte // on the stack
	name := room[:0]
	if p.period.names == nil {
		name = at.AppendFormat(name, p.layout)
	} else {
		name = append(name, (*p.period.names)(at)...)
	}
	if err := checkCount(n); err != nil { // a period is not made for that
		return 0, err
	}
	for o := p.find(name); ; {
		if o != nil {
			if now := p.opened.Load(); o.used.Load() != now { // a call that comes late only has the period seem less used
				o.used.Store(now)
			}
			if first, err = o.NextN(ctx, n); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrDeleted) {
				return first, err
			}
		}
		// It was closed, since others were used later; or it was deleted, and opened once more it is not found.
		if o, err = p.enter(ctx, string(name), o); err != nil {
			return 0, err
		}
	}
}

// enter returns a period that is open, and is not the one that is gone. It has it opened unless that is done.
func (p *Periods) enter(ctx context.Context, name string, gone *openPeriod) (*openPeriod, error) {
	if p.period.names != nil { // one with a dot would be looked for under another sequence
		if err := p.period.checkName(name, true); err != nil {
			return nil, err
		}
	}
	o, err := p.start(name, gone)
	if err != nil {
		return nil, err
	}
	select {
	case <-o.ready:
		return o, o.failed
	case <-ctx.Done():
		return nil, fmt.Errorf("sequence %q: no number before the call's context ended: the period is not open yet: %w", periodName(p.name, name), pause.Ended(ctx))
	}
}

// start returns a period that is open, and not gone, or about to be open.
func (p *Periods) start(name string, gone *openPeriod) (*openPeriod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open.Load() == nil {
		return nil, ErrClosed
	}
	if o := p.find([]byte(name)); o != nil && o != gone {
		return o, nil
	}
	o := p.opening[name]
	if o == nil {
		o = &openPeriod{name: name, ready: make(chan struct{})}
		p.opening[name] = o
		before := p.ending[name]
		p.work.Go(func() { p.begin(o, before) })
	}
	return o, nil
}

// begin opens a period, once the numbers that it had before were given back.
func (p *Periods) begin(o, before *openPeriod) {
	if before != nil {
		_ = before.Close()
	}
	opened, err := Open(p.ctx, p.store, periodName(p.name, o.name), p.options...)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(o.ready)
	delete(p.opening, o.name)
	if p.failure = nil; errors.Is(err, ErrStore) {
		p.failure = err
	}
	was := p.open.Load()
	if was == nil {
		o.failed = ErrClosed // what was opened has no numbers
		return
	}
	all := slices.Clone(*was)
	remove := func(gone *openPeriod) {
		p.close(gone)
		all = slices.DeleteFunc(all, func(o *openPeriod) bool { return o == gone })
	}
	if was := p.find([]byte(o.name)); was != nil { // it was deleted
		remove(was)
	}
	if o.Sequence, o.failed = opened, err; err == nil {
		o.used.Store(p.opened.Add(1))
		all = append(all, o)
	}
	if len(all) > maxOpenPeriods {
		remove(slices.MinFunc(all, func(a, b *openPeriod) int { return cmp.Compare(a.used.Load(), b.used.Load()) }))
	}
	p.open.Store(&all)
}

// close closes a period for another one. The store may take its time. The caller has mu.
func (p *Periods) close(o *openPeriod) {
	p.ending[o.name] = o
	p.work.Go(func() {
		_ = o.Close() // it logs what it cannot give back
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ending[o.name] == o {
			delete(p.ending, o.name)
		}
	})
}

// find returns a period if it is open.
func (p *Periods) find(name []byte) *openPeriod {
	for _, o := range p.all() {
		if o.name == string(name) {
			return o
		}
	}
	return nil
}

// all are the periods that are open.
func (p *Periods) all() []*openPeriod {
	if all := p.open.Load(); all != nil {
		return *all
	}
	return nil
}

// Err returns why the last refill of an open period failed, as [Sequence.Err], or why the store failed when a
// period was opened last; nil if neither did. It never waits for the store.
func (p *Periods) Err() error {
	if p.open.Load() == nil {
		return ErrClosed
	}
	for _, o := range p.all() {
		if err := o.Err(); err != nil && !errors.Is(err, ErrClosed) {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
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
// error wraps [ErrNotGivenBack]. Further calls return the same error.
func (p *Periods) Close() error { return p.CloseContext(context.Background()) }

// CloseContext is [Periods.Close], but returns as soon as ctx ends, as [Sequence.CloseContext] does.
func (p *Periods) CloseContext(ctx context.Context) error {
	p.mu.Lock()
	if all := p.open.Swap(nil); all != nil {
		p.last = *all
		for _, o := range p.last {
			o.seal()
		}
	}
	p.mu.Unlock()
	p.cancel()
	return p.end.Wait(ctx, fmt.Errorf("sequence %q: %w", p.name, ErrNotGivenBack), p.giveBack)
}

// giveBack closes what was open, and waits for all goroutines.
func (p *Periods) giveBack(ctx context.Context) error {
	errs := make([]error, len(p.last))
	for i, o := range p.last {
		p.work.Go(func() { errs[i] = o.CloseContext(ctx) })
	}
	p.work.Wait()
	return errors.Join(errs...)
}
