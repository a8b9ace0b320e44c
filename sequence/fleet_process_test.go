package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/segment"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// process is a program that uses all sequences of its site: the real Sequence.
type process struct {
	*fleettest.Process
	f       *fleet
	site    int
	threads []*thread
	opened  []*opened
	origin  *process // whose memory it has a copy of, or nil
	issuers int
	known   map[string]bool // by the name of a write: it knows that it has landed

	closing bool
	closed  bool
	clean   bool // all sequences were closed, and the rests are settled
	cloned  bool
	last    bool // none is started after it
}

// opened is a Sequence of a process.
type opened struct {
	p   *process
	s   *sequence.Sequence
	c   *ledger
	id  string
	key string

	sent         cell.Sequence // the last record that was to be written
	creation     uint64        // of the sequence
	writes, most uint64        // that the process has read, or written
	noticed      bool          // that the store went back, and has no grant since
	grants       int           // how many it has had

	issued    int64
	largest   int64 // batch that was asked for
	abandoned int64 // numbers of calls for more than a step that have failed
	returned  int64 // the largest number, or -1
	running   int64 // numbers that running calls ask for
	served    int64 // true time of the last number, or of an error that there is none
	err       error // the last
}

func (s *opened) life() *life { return s.c.lives[s.id] }

// thread is one of a process's threads.
type thread struct {
	*fleettest.Thread
	p     *process
	ready func() bool // what it waits for, or nil

	began         int64 // true time of the present call
	late          bool  // a Close had returned when it began
	warned        bool  // the process had noticed that the store went back
	grants        int   // of the sequence, by then
	floor, latest int64 // returned before it, by the process and by any process; or -1
}

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	if base.M.ID >= f.count {
		return &operator{base, f}
	}
	p := &process{Process: base, f: f, site: base.M.ID % len(f.sites), known: map[string]bool{}}
	if n := len(f.all); n > 0 {
		for _, o := range f.all {
			if o.M == base.M && o.cloned {
				p.origin, o.cloned = o, false
			}
		}
	}
	f.all = append(f.all, p)
	return p
}

// Begin starts the first thread.
func (p *process) Begin() {
	p.spawn("main", func(t *thread) {
		if p.origin != nil {
			p.copy(t)
		} else if err := p.open(t); err != nil {
			p.failed(t, err)
			return
		}
		p.spawn("keeper", p.keep)
		if !p.f.Often(16) {
			p.issuers = 1 + p.f.Rng.IntN(p.f.issuers)
		}
		for i := range p.issuers {
			p.spawn("issuer "+strconv.Itoa(i), p.issue)
		}
	})
}

func (p *process) spawn(name string, body func(*thread)) *thread {
	t := &thread{p: p}
	t.Thread = p.Process.Spawn(name, func(*fleettest.Thread) { body(t) })
	t.Self = t
	p.threads = append(p.threads, t)
	return t
}

func (f *fleet) current() *thread { return f.Current.Self.(*thread) }

// client is the process's way to the store of its site.
func (p *process) client() stores.Store {
	var c stores.Store = client{fleettest.Client{P: p.Process, Store: p.f.sites[p.site].store}, p}
	if m := p.f.mutant; m != nil && m.store != nil {
		c = m.store(p, c)
	}
	return c
}

// client notes which writes the process knows to have landed.
type client struct {
	fleettest.Client
	p *process
}

func (c client) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	now, err := c.Client.Swap(ctx, key, version, value)
	if err == nil {
		r := decode(value)
		c.p.known[r.Write] = true
		for _, s := range c.p.opened {
			if s.key == key && s.sent.Write == r.Write {
				s.reads(r)
			}
		}
	}
	return now, err
}

func (s *opened) reads(r cell.Sequence) {
	s.writes, s.most = max(s.writes, r.Writes), max(s.most, r.Most)
}

func (p *process) options() []sequence.Option {
	log := slog.DiscardHandler
	if p.f.Trace != nil {
		log = traceHandler{p}
	}
	return []sequence.Option{
		sequence.WithPolling(), sequence.WithClock(fleettest.Clock{P: p.Process}), sequence.WithLogger(slog.New(log)),
		sequence.WithTimeout(time.Hour), sequence.WithOutage(time.Duration(p.f.outage)),
	}
}

// open opens all sequences of the site, and creates those that are missing.
func (p *process) open(t *thread) error {
	f := p.f
	for i, name := range f.names {
		ctx, cancel := t.deadline(2 * f.Period)
		options := p.options()
		if f.Often(512) {
			options = append(options, sequence.WithDefinition(f.definition(i, p.site)))
		}
		s, err := sequence.Open(ctx, p.client(), name, options...)
		if errors.Is(err, sequence.ErrNotFound) {
			err = sequence.Create(ctx, p.client(), name, f.definition(i, p.site))
			if err == nil {
				s, err = sequence.Open(ctx, p.client(), name, p.options()...)
			}
		}
		cancel()
		if err != nil {
			return err
		}
		p.add(i, s)
	}
	return nil
}

func (p *process) add(i int, s *sequence.Sequence) *opened {
	c := p.f.sites[p.site].cells[i]
	o := &opened{p: p, s: s, c: c, id: s.Seen().ID, key: cell.SequenceKey(c.name), creation: s.Seen().Creation, returned: -1}
	o.reads(*s.Seen().Sequence)
	rng := rand.New(rand.NewPCG(p.f.Rng.Uint64(), 0))
	s.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) }, o.decides, p.await)
	p.opened = append(p.opened, o)
	return o
}

// copy gives p a copy of another process's memory, and tells it so.
func (p *process) copy(t *thread) {
	p.f.clones++
	for i, o := range p.origin.opened {
		s := p.add(i, o.s.Clone(p.client(), p.options()...))
		s.writes, s.most = o.writes, o.most
	}
	p.restored(t)
}

// await lets others run until a call can go on.
func (p *process) await(ready func() bool) {
	t := p.f.current()
	for !ready() && !t.Dead() {
		t.ready = ready
		t.Block()
	}
	t.ready = nil
}

// Looks wakes the threads that can go on.
func (p *process) Looks() {
	for _, t := range p.threads {
		if t.ready != nil && t.ready() {
			t.ready = nil
			t.Wake(0)
		}
	}
}

// deadline returns a context that ends after d of true time.
func (t *thread) deadline(d int64) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Ctx = ctx
	t.p.f.At(d, func() {
		cancel()
		if t.Ctx == ctx {
			t.Wake(0)
		}
	})
	return ctx, func() {
		t.Ctx = nil
		cancel()
	}
}

// failed ends a process that could not start; another one is started later.
func (p *process) failed(t *thread, err error) {
	if p.f.Trace != nil {
		t.Tracef("cannot start: %v", err)
	}
	p.expect(t, err)
	p.End()
	p.M.StartLater(p.f.Between(p.f.Period/16, p.f.Period/2))
}

// expect makes sure that an error is one that can be.
func (p *process) expect(t *thread, err error) {
	f := p.f
	switch {
	case errors.Is(err, sequence.ErrStore), errors.Is(err, context.Canceled), errors.Is(err, sequence.ErrClosed),
		errors.Is(err, stores.ErrWentBack) && f.Rewinds > 0,
		(errors.Is(err, sequence.ErrNotFound) || errors.Is(err, sequence.ErrDeleted)) && (f.has(recreate) || f.Rewinds > 0),
		errors.As(err, new(*sequence.DefinitionError)) && (f.has(recreate) || f.has(another)),
		errors.As(err, new(*sequence.OptionError)) && f.has(recreate), // none is left above the deleted one
		errors.As(err, new(*sequence.ExhaustedError)):
	default:
		f.Fail("error", "%s %s: %T %v", p.Name, t.Name, err, err)
	}
}

func (f *fleet) has(kind fleettest.FaultKind) bool {
	for _, k := range f.Kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// decides is the decision of a round. It is a place at which others come first.
func (s *opened) decides(state segment.State, c segment.Cell) segment.Decision {
	p, r := s.p, c.Record
	f := p.f
	t := f.current()
	t.Hiccup()
	var d segment.Decision
	if f.mutant != nil && f.mutant.decide != nil {
		d = f.mutant.decide(s, state, c)
	} else {
		d = segment.Decide(state, c)
	}
	less := c.Version == 0 || r.ID == s.id && r.Writes < s.writes || r.ID == s.id && r.Most < s.most || r.ID != s.id && r.Creation <= s.creation && !r.Lost
	if !state.Closing || len(state.Pending) == 0 { // or its own give-back may have landed
		for _, o := range state.Owned {
			less = less || r.ID == s.id && r.Next < o.To
		}
	}
	if less && d.Kind != segment.Mark && d.Kind != segment.Marked && !r.Deleted {
		f.Fail("went back unnoticed", "%s has seen %d writes and the most %d of %s, reads %s, and decides %d", p.Name, s.writes, s.most, s.c.name, text(r), d.Kind)
	}
	if !less && r.ID == s.id {
		s.reads(r)
	}
	t.Hiccup()
	if f.Trace != nil {
		t.Tracef("decides %d on %s: want %d, need %d, range %v", d.Kind, text(r), state.Want, state.Need, d.Range)
	}
	switch d.Kind {
	case segment.Mark, segment.Marked:
		s.noticed = true
	case segment.Adopt:
		f.adopted++
		p.known[r.Write] = true
		s.noticed = false
		s.grants++
	case segment.Grant:
		s.noticed = false
		s.grants++
	}
	s.sent = d.Record
	return d
}

// traceHandler writes the log of a process to the trace.
type traceHandler struct{ p *process }

func (h traceHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h traceHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h traceHandler) WithGroup(string) slog.Handler            { return h }
func (h traceHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, ", %s", a)
		return true
	})
	h.p.f.Tracef("%s: %s", h.p.Name, b.String())
	return nil
}
