package sequence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// process is a program that uses the sequence: the real Sequence.
type process struct {
	*fleettest.Process
	f       *fleet
	s       *sequence.Simulated // or nil
	id      string              // of the sequence
	issuers int
	known   map[string]bool // by the name of a write: it was told that it has landed

	closed bool // a Close has returned
	clean  bool // the sequence was closed, and the rest is settled

	issued    int64
	largest   int64 // batch that was asked for
	abandoned int64 // numbers of calls for more than a step that have failed
	returned  int64 // the largest number, or -1
	running   int64 // numbers that running calls ask for
	trusts    int   // steps after which nothing said that the store went back
	served    int64 // true time of the last number, or of an error that there is none
	err       error // the last
}

func (p *process) life() *life { return p.f.cell.lives[p.id] }

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	p := &process{Process: base, f: f, known: map[string]bool{}, returned: -1}
	f.all = append(f.all, p)
	return p
}

// Main opens the sequence, and starts the threads that use it.
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
	if p.f.mutant {
		c = fleettest.Retrying{Store: c}
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

// open opens the sequence, and creates it if it is missing.
func (p *process) open(t *fleettest.Thread) error {
	f := p.f
	ctx, end := t.Within(2 * f.Period)
	defer end()
	options := []sequence.Option{
		sequence.WithClock(fleettest.Clock{P: p.Process}), sequence.WithLogger(p.Log()),
		sequence.WithTimeout(time.Hour), sequence.WithOutage(time.Duration(f.outage)),
	}
	if f.Often(512) {
		options = append(options, sequence.WithDefinition(f.definition))
	}
	s, err := sequence.Open(ctx, p.client(), name, options...)
	if errors.Is(err, sequence.ErrNotFound) {
		if err = sequence.Create(ctx, p.client(), name, f.definition); err == nil {
			s, err = sequence.Open(ctx, p.client(), name, options...)
		}
	}
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(f.Rng.Uint64(), 0))
	p.s, p.id = sequence.Simulate(s, func(ready func() bool) { f.Current.Await(ready) }, func() string { return strconv.FormatUint(rng.Uint64(), 36) })
	return nil
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

// keep refills the sequence, as the goroutines of a Sequence do by themselves.
func (p *process) keep(t *fleettest.Thread) {
	for !p.Closing {
		ctx, end := t.Within(p.f.timeout)
		err := p.s.Poll(ctx)
		end()
		if err != nil {
			p.expect(t, err)
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
	p *process
	n int64

	late             bool  // a Close had returned
	warned           bool  // the process had noticed that the store went back
	trusts           int   // of the sequence, by then
	returned, latest int64 // returned before it, by the process and by any process; or -1
}

// issue makes one call.
func (p *process) issue(t *fleettest.Thread, _ int) error {
	f := p.f
	c := call{t, p, 1, p.closed, p.s.Noticed(), p.trusts, p.returned, p.life().latest}
	timeout := f.timeout
	if f.batch > 1 && f.Often(f.pBatch) {
		c.n += f.Rng.Int64N(f.batch)
	}
	if f.Calm {
		timeout = 4 * f.Period
	}
	p.running += c.n
	p.largest = max(p.largest, c.n)
	ctx, end := t.Within(timeout)
	first, err := p.s.NextN(ctx, c.n)
	end()
	p.running -= c.n
	if err == nil {
		p.served = f.Now
		f.issued(c, first)
		return nil
	}
	f.Tally["refusals"]++
	p.err = err
	if c.n > p.s.Definition().MaxStep {
		p.abandoned += c.n
	}
	t.Tracef("fails: %v", err)
	p.expect(t, err)
	switch {
	case errors.Is(err, sequence.ErrDeleted):
		p.Shutdown()
	case errors.As(err, new(*sequence.ExhaustedError)):
		p.served = f.Now
	}
	return err
}

// Step counts the steps after which nothing says that the store went back.
func (p *process) Step() {
	if p.Ready() && !p.s.Noticed() {
		p.trusts++
	}
}

// Ready reports whether p has opened the sequence.
func (p *process) Ready() bool { return p.s != nil }

// Close closes p in good order.
func (p *process) Close(t *fleettest.Thread) bool {
	f := p.f
	timeout := int64(time.Hour)
	if !f.Calm && f.Often(256) {
		timeout = f.Between(0, p.Timeout)
	}
	ctx, end := t.Within(timeout)
	defer end()
	err := p.s.CloseContext(ctx)
	if f.Trace != nil {
		t.Tracef("has closed: %v; %+v", err, p.s.Stats())
	}
	if err != nil && !errors.Is(err, sequence.ErrNotGivenBack) {
		f.Fail("close", "%s: %v", p.Name, err)
	}
	p.closed, p.clean = true, !errors.Is(err, context.Canceled)
	return true
}

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored(t *fleettest.Thread) {
	ctx, end := t.Within(p.f.timeout)
	defer end()
	if err := p.s.Restored(ctx); err != nil {
		p.expect(t, err)
	}
}
