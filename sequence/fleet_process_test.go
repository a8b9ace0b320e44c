package sequence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// process is a program that uses all sequences: the real Sequence.
type process struct {
	*fleettest.Process
	f       *fleet
	opened  []*opened
	issuers int
	known   map[string]bool // by the name of a write: it was told that it has landed

	closed bool // a Close has returned
	clean  bool // all sequences were closed, and the rests are settled
}

// opened is a Sequence of a process.
type opened struct {
	p   *process
	s   *sequence.Sequence
	c   *ledger
	id  string
	key string

	issued    int64
	largest   int64 // batch that was asked for
	abandoned int64 // numbers of calls for more than a step that have failed
	returned  int64 // the largest number, or -1
	running   int64 // numbers that running calls ask for
	trusts    int   // steps after which nothing said that the store went back
	served    int64 // true time of the last number, or of an error that there is none
	err       error // the last
}

func (s *opened) life() *life { return s.c.lives[s.id] }

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	p := &process{Process: base, f: f, known: map[string]bool{}}
	p.OnStep = func() {
		for _, s := range p.opened {
			if !s.s.Noticed() {
				s.trusts++
			}
		}
	}
	f.all = append(f.all, p)
	return p
}

// Main opens the sequences, and starts the threads that use them.
func (p *process) Main(t *fleettest.Thread) {
	f := p.f
	if p.M.ID >= f.count {
		p.operate()
		return
	}
	if err := p.open(t); err != nil {
		t.Tracef("cannot start: %v", err)
		p.expect(t, err)
		p.Replace(f.Between(f.Period/16, f.Period/2))
		return
	}
	p.Spawn("keeper", p.keep)
	if !f.Often(16) {
		p.issuers = 1 + f.Rng.IntN(f.Issuers)
	}
	for i := range p.issuers {
		p.Issue("issuer "+strconv.Itoa(i), p.issue)
	}
}

// client is the process's way to the store.
func (p *process) client() stores.Store {
	var c stores.Store = client{fleettest.Client{P: p.Process}, p}
	if m := p.f.mutant; m != nil && m.store != nil {
		c = m.store(p, c)
	}
	return c
}

// client notes which writes the process is told to have landed.
type client struct {
	fleettest.Client
	p *process
}

func (c client) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := c.Client.Swap(ctx, key, version, value)
	if err == nil {
		c.p.known[decode(value).Write] = true
	}
	return now, err
}

func (p *process) options() []sequence.Option {
	return []sequence.Option{
		sequence.WithAwait(func(ready func() bool) { p.f.Current.Await(ready) }), sequence.WithClock(fleettest.Clock{P: p.Process}), sequence.WithLogger(p.Log()),
		sequence.WithTimeout(time.Hour), sequence.WithOutage(time.Duration(p.f.outage)),
	}
}

// open opens all sequences, and creates those that are missing.
func (p *process) open(t *fleettest.Thread) error {
	f := p.f
	ctx, end := t.Within(2 * f.Period)
	defer end()
	for i, c := range f.cells {
		options := p.options()
		if f.Often(512) {
			options = append(options, sequence.WithDefinition(f.definitions[i]))
		}
		s, err := sequence.Open(ctx, p.client(), c.name, options...)
		if errors.Is(err, sequence.ErrNotFound) {
			if err = sequence.Create(ctx, p.client(), c.name, f.definitions[i]); err == nil {
				s, err = sequence.Open(ctx, p.client(), c.name, p.options()...)
			}
		}
		if err != nil {
			return err
		}
		p.add(i, s)
	}
	return nil
}

func (p *process) add(i int, s *sequence.Sequence) {
	rng := rand.New(rand.NewPCG(p.f.Rng.Uint64(), 0))
	c := p.f.cells[i]
	id := s.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) })
	p.opened = append(p.opened, &opened{p: p, s: s, c: c, id: id, key: cell.SequenceKey(c.name), returned: -1})
}

// expect makes sure that an error is one that can be.
func (p *process) expect(t *fleettest.Thread, err error) {
	f := p.f
	back := f.Tally["rewinds"] > 0
	switch {
	case errors.Is(err, sequence.ErrStore), errors.Is(err, context.Canceled), errors.Is(err, sequence.ErrClosed),
		errors.Is(err, stores.ErrWentBack) && back,
		(errors.Is(err, sequence.ErrNotFound) || errors.Is(err, sequence.ErrDeleted)) && (f.has(recreate) || back || f.PStale > 0),
		errors.As(err, new(*sequence.DefinitionError)) && f.has(recreate),
		errors.As(err, new(*stores.OptionError)) && f.has(recreate), // none is left above the deleted one
		errors.As(err, new(*sequence.ExhaustedError)):
	default:
		f.Fail("error", "%s %s: %T %v", p.Name, t.Name, err, err)
	}
}

func (f *fleet) has(kind fleettest.FaultKind) bool { return slices.Contains(f.Kinds, kind) }

// keep refills the sequences, as the goroutines of a Sequence do by themselves.
func (p *process) keep(t *fleettest.Thread) {
	for !p.Closing {
		for _, s := range p.opened {
			ctx, end := t.Within(p.f.timeout)
			err := s.s.Poll(ctx)
			end()
			if err != nil {
				p.expect(t, err)
			}
		}
		often := p.f.Period / 16
		if p.f.Calm {
			often = p.f.bound() / 32
		}
		t.Sleep(time.Duration(p.f.Between(often/16, often)))
	}
}

// call is a call for n numbers.
type call struct {
	*fleettest.Thread
	s *opened
	n int64

	late          bool  // a Close had returned
	warned        bool  // the process had noticed that the store went back
	trusts        int   // of the sequence, by then
	floor, latest int64 // returned before it, by the process and by any process; or -1
}

// issue makes one call.
func (p *process) issue(t *fleettest.Thread, round int) error {
	f := p.f
	s := p.opened[f.Rng.IntN(len(p.opened))]
	if f.Calm {
		s = p.opened[round%len(p.opened)]
	}
	c := call{t, s, 1, p.closed, s.s.Noticed(), s.trusts, s.returned, s.life().latest}
	timeout := f.timeout
	if f.batch > 1 && f.Often(f.pBatch) {
		c.n += f.Rng.Int64N(f.batch)
	}
	if f.Calm {
		timeout = 4 * f.Period
	}
	s.running += c.n
	s.largest = max(s.largest, c.n)
	ctx, end := t.Within(timeout)
	next := s.s.NextN
	if c.n == 1 {
		next = func(ctx context.Context, _ int64) (int64, error) { return s.s.Next(ctx) }
	}
	first, err := next(ctx, c.n)
	end()
	s.running -= c.n
	if err == nil {
		s.served = f.Now
		f.issued(c, first)
		return nil
	}
	f.Tally["refusals"]++
	s.err = err
	if c.n > s.s.Definition().MaxStep {
		s.abandoned += c.n
	}
	t.Tracef("fails: %v", err)
	p.expect(t, err)
	switch {
	case errors.Is(err, sequence.ErrDeleted):
		p.Shutdown()
	case errors.As(err, new(*sequence.ExhaustedError)):
		s.served = f.Now
	}
	return err
}

// Ready reports whether p has opened its sequences.
func (p *process) Ready() bool { return len(p.opened) == len(p.f.cells) }

// Close closes p in good order.
func (p *process) Close(t *fleettest.Thread) bool {
	f := p.f
	timeout := int64(time.Hour)
	if !f.Calm && f.Often(256) {
		timeout = f.Between(0, p.Timeout)
	}
	clean := true
	for _, s := range p.opened {
		ctx, end := t.Within(timeout)
		var err error
		if f.mutant != nil && f.mutant.close != nil {
			err = f.mutant.close(s, t, ctx)
		} else {
			err = s.s.CloseContext(ctx)
		}
		end()
		if f.Trace != nil {
			t.Tracef("has closed %s: %v; %+v", s.c.name, err, s.s.Stats())
		}
		clean = clean && !errors.Is(err, context.Canceled)
		if err != nil && !errors.Is(err, sequence.ErrNotGivenBack) {
			f.Fail("close", "%s: %v", p.Name, err)
		}
	}
	p.closed, p.clean = true, clean
	return true
}

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored(t *fleettest.Thread) {
	for _, s := range p.opened {
		ctx, end := t.Within(p.f.timeout)
		if err := s.s.Restored(ctx); err != nil {
			p.expect(t, err)
		}
		end()
	}
}
