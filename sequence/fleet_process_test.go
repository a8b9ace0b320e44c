package sequence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/fleettest"
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
		if p.origin != nil && !p.origin.closing {
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
	return []sequence.Option{
		sequence.WithPolling(), sequence.WithClock(fleettest.Clock{P: p.Process}), sequence.WithLogger(p.Log()),
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
	m := s.Machine()
	known := m.Known().Record
	o := &opened{p: p, s: s, c: c, id: known.ID, key: cell.SequenceKey(c.name), creation: known.Creation, returned: -1}
	o.reads(known)
	rng := rand.New(rand.NewPCG(p.f.Rng.Uint64(), 0))
	s.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) }, func(m *count.Machine) drive.Machine[count.Input, count.Op, count.Result, count.Event] {
		return watched{m, o}
	}, p.await)
	p.opened = append(p.opened, o)
	return o
}

// copy gives p a copy of another process's memory, and tells it so.
func (p *process) copy(t *thread) {
	p.f.Clones++
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
		(errors.Is(err, sequence.ErrNotFound) || errors.Is(err, sequence.ErrDeleted)) && (f.has(recreate) || f.Rewinds > 0 || f.PStale > 0),
		errors.As(err, new(*sequence.DefinitionError)) && (f.has(recreate) || f.has(another)),
		errors.As(err, new(*stores.OptionError)) && f.has(recreate), // none is left above the deleted one
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

// watched is a machine whose steps the run sees.
type watched struct {
	*count.Machine
	s *opened
}

func (w watched) Next(in count.Input) count.Op {
	s, m := w.s, w.Machine
	op := m.Next(in)
	if x := s.p.f.mutant; x != nil && x.next != nil {
		op = x.next(s, m, in, op)
	}
	s.sent = op.Record
	return op
}

// Done holds what the machine makes of a read against what the process has seen before, and what is in
// the store.
func (w watched) Done(in count.Input, op count.Op, r count.Result) []count.Event {
	s, m, p := w.s, w.Machine, w.s.p
	f := p.f
	known := m.Known().Record
	if f.mutant != nil && f.mutant.done != nil {
		f.mutant.done(s, m, &op, r)
	}
	events := m.Done(in, op, r)
	if f.Trace != nil {
		for _, e := range events {
			f.current().Tracef("%s: operation %d for %d ended with %d: event %d, %v %v, lost %d", s.c.name, op.Kind, op.Why, r.Status, e.Kind, e.Range, e.Ranges, e.Lost)
		}
	}
	if op.Kind == count.Read && r.Status == count.OK && !in.Restored {
		s.looks(m, r.Cell, events)
	}
	for _, e := range events {
		switch e.Kind {
		case count.Suspected, count.WentBack, count.Marked:
			s.noticed = true
		case count.Trusted:
			f.Trusted++
			s.noticed = false
			s.grants++
			if !s.c.past(r.Cell.Record, known.Write) {
				f.Fail("trusted a store that went back", "%s knows write %d of %s, which is not in the past of %s", p.Name, known.Writes, s.c.name, text(r.Cell.Record))
			}
		case count.Unclear:
			f.Unclear++
		case count.Granted:
			s.noticed = false
			s.grants++
			if op.Kind == count.Read {
				f.Adopted++
				s.adopts(e.Range)
			}
		}
	}
	return events
}

// looks makes sure that a read that shows less than was read before does not go unnoticed.
func (s *opened) looks(m *count.Machine, c count.Cell, events []count.Event) {
	p, r := s.p, c.Record
	less := c.Version == 0 || r.ID == s.id && r.Writes < s.writes || r.ID == s.id && r.Most < s.most || r.ID != s.id && r.Creation <= s.creation && !r.Lost
	marked := len(events) > 0 && events[0].Kind == count.Marked
	if less && !m.Suspects() && !marked && !r.Deleted {
		p.f.Fail("went back unnoticed", "%s has seen %d writes and the most %d of %s, and reads %s: %+v", p.Name, s.writes, s.most, s.c.name, text(r), events)
	}
	if !less && r.ID == s.id {
		s.reads(r)
	}
}

// adopts notes that the process knows its write that has granted a range.
func (s *opened) adopts(r count.Range) {
	for _, g := range s.life().grants {
		if g.owner == s.p.Process && g.From == r.From {
			s.p.known[g.write] = true
		}
	}
}
