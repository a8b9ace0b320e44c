package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// process is a program that holds a lease and issues IDs under it: the real Keeper
// and the real Generator.
type process struct {
	*fleettest.Process
	f       *fleet
	threads []*thread

	k        *lease.Keeper
	gen      *generator.Generator
	node     int64 // of WithNode, or -1
	strategy strategies.Strategy
	ctx      context.Context
	cancel   func()
	loop     *thread

	busy bool // the keeper's mutex is held; a thread that waited for the real one would stop all of them
	wait []*thread

	closing bool
	sealed  bool

	changed <-chan struct{}  // of the window, when it was looked at last
	used    window.Range     // that the window was granted last
	owned   map[int64]uint64 // by node number: the highest limit that it was granted
	noticed uint64           // once it noticed that the store went back: no tick below

	last    int64 // true time of the latest ID, or 0
	losses  uint64
	lost    int64 // true time of the latest loss of a number, or 0
	tick    uint64
	largest snowflake.ID // returned by a call other than a stream's
	excuse  string       // why it need not issue IDs at the moment
	err     error        // the last
}

// thread is one of a process's threads.
type thread struct {
	*fleettest.Thread
	f *fleet
	p *process

	kind    callKind
	calling bool            // is within a call of the generator
	closed  bool            // a Close has returned
	late    bool            // it had when the present call began
	least   uint64          // that the process had noticed by then, see process
	changed <-chan struct{} // of the window, as the generator has it

	floor     snowflake.ID // the largest ID that was returned before the call
	floorTick uint64
	latest    snowflake.ID // of the stream
	batch     [64]snowflake.ID
}

type callKind uint8

const (
	single callKind = iota
	batched
	streamed
	bounded
)

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	p := &process{Process: base, f: f, node: -1, largest: -1, owned: map[int64]uint64{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.OnEnd = func() { // the locks of a process that has ended are free
		for key, token := range f.locks {
			if token.by == p {
				delete(f.locks, key)
			}
		}
	}
	f.all = append(f.all, p)
	return p
}

// Begin starts the first thread.
func (p *process) Begin() { p.spawn("main", p.main) }

func (p *process) spawn(name string, body func(*thread)) *thread {
	t := &thread{f: p.f, p: p, latest: -1}
	t.Thread = p.Process.Spawn(name, func(*fleettest.Thread) { body(t) })
	t.Self = t
	t.Changed = func() bool { return t.calling && t.isChanged() }
	p.threads = append(p.threads, t)
	return t
}

// isChanged reports whether the window has changed since the generator took its channel.
func (t *thread) isChanged() bool {
	select {
	case <-t.changed:
		return true
	default:
		return false
	}
}

// virtualClock is a process's view of its machine's clock.
type virtualClock struct {
	fleettest.Clock
	p *process
}

func (c virtualClock) Now() time.Time {
	if now := c.p.f.Current; now != nil && !now.Dead() {
		if t := now.Self.(*thread); t.calling {
			t.changed = c.p.k.Window().Changed() // as the generator has it
		}
		now.Hiccup()
	}
	return c.Clock.Now()
}

// main claims a lease, and starts the threads that use it.
func (p *process) main(t *thread) {
	f := p.f
	k, err := p.newKeeper()
	if err == nil {
		p.k = k
		err = p.claim(t)
	}
	if err != nil {
		p.failed(t, err)
		return
	}
	t.Hiccup()
	issuers := 0
	if !f.Often(16) { // else it is a keeper without a generator
		p.strategy = f.strategies[f.Rng.IntN(len(f.strategies))]
		p.lock(t)
		p.gen, err = generator.New(generator.WithLease(k), generator.WithStrategy(p.strategy))
		p.unlock()
		if err != nil {
			p.failed(t, err)
			return
		}
		issuers = 1 + f.Rng.IntN(f.issuers)
	} else {
		p.excuse = "it issues nothing"
	}
	p.loop = p.spawn("keeper", p.keep)
	for i := range issuers {
		p.spawn("issuer "+strconv.Itoa(i), p.issue)
	}
}

func (p *process) client() fleettest.Client { return fleettest.Client{P: p.Process} }

func (p *process) newKeeper() (*lease.Keeper, error) {
	f := p.f
	window := f.Period
	if f.windows {
		window = f.Between(f.Period/2, 2*f.Period)
	}
	options := []lease.Option{
		lease.WithLayout(f.layout), lease.WithClock(virtualClock{fleettest.Clock{P: p.Process}, p}), lease.WithWindow(max(time.Duration(window), 6*f.layout.Tick)),
		lease.WithLogger(p.Log()), lease.WithOwner(p.Name), lease.WithTimeout(time.Hour), lease.WithFleetCheck(time.Minute, f.strict),
	}
	if f.pinned != 0 && (f.pinned == pinnedAll || f.Often(512)) {
		p.node = int64(p.M.ID) % f.numbers()
		options = append(options, pin(p.node))
	}
	var store stores.Store = p.client()
	if f.locking {
		store = lockingClient{p.client(), p}
	}
	if f.mutant != nil && f.mutant.store != nil {
		store = f.mutant.store(p, store)
	}
	k, err := lease.NewKeeper(store, options)
	if err != nil {
		return nil, err
	}
	// What is left to chance comes from the seed.
	rng := rand.New(rand.NewPCG(f.Rng.Uint64(), 0))
	k.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) }, func(m *grant.Machine) lease.Protocol { return hooked{p, m} }, p.cancelLoop)
	return k, nil
}

// lockingClient is a process's way to a store that knows who is alive.
type lockingClient struct {
	fleettest.Client
	p *process
}

type lockToken struct{ by *process }

func (c lockingClient) TryLock(ctx context.Context, key string) (func(), error) {
	f := c.p.f
	f.Current.Hiccup()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if f.locks[key] != nil {
		return nil, fmt.Errorf("fleet: %w", stores.ErrLocked)
	}
	token := &lockToken{c.p}
	f.locks[key] = token
	return func() {
		if f.locks[key] == token {
			delete(f.locks, key)
		}
	}, nil
}

// claim is that of package lease; one in two is ready to wait.
func (p *process) claim(t *thread) error {
	f := p.f
	ctx, cancel := context.WithCancel(context.Background())
	if f.Calm || f.Often(768) {
		ctx, cancel = context.WithTimeout(context.Background(), time.Hour)
	}
	defer cancel()
	t.Ctx = ctx
	defer func() { t.Ctx = nil }()
	if !f.Calm && f.Often(256) {
		f.At(f.Between(0, 4*f.Period), func() {
			if !f.Calm {
				t.Cancelled(ctx, cancel)
			}
		})
	}
	p.lock(t)
	defer p.unlock()
	return p.k.ClaimFirst(ctx)
}

// failed ends a process that could not start; another one is started later.
func (p *process) failed(t *thread, err error) {
	f := p.f
	if f.Trace != nil {
		t.Tracef("cannot start: %v", err)
	}
	switch {
	case errors.As(err, new(*lease.NoFreeNodeError)), errors.Is(err, lease.ErrStore), errors.Is(err, lease.ErrHeld), errors.Is(err, stores.ErrConflict),
		errors.Is(err, context.Canceled), errors.Is(err, lease.ErrClosed):
	case errors.Is(err, lease.ErrEndOfTime), errors.Is(err, lease.ErrSkew), errors.As(err, new(*stores.OptionError)):
		if f.Calm {
			p.err, p.excuse = err, fmt.Sprintf("%T", err)
			return // nothing will change
		}
	default:
		f.Fail("error", "%s cannot start: %T %v", p.Name, err, err)
	}
	p.End()
	p.M.StartLater(f.Between(f.Period/16, f.Period/2))
}

// keep polls the keeper, or does what the goroutine of Claim does.
func (p *process) keep(t *thread) {
	for p.ctx.Err() == nil {
		p.lock(t)
		next, _ := p.k.Poll(p.ctx)
		p.unlock()
		if len(p.k.Window().More()) == 0 {
			t.Sleep(next)
		}
		select {
		case <-p.k.Window().More():
		default:
		}
	}
}

// issue is what a thread that issues IDs does.
func (p *process) issue(t *thread) {
	f := p.f
	var stream *generator.Stream
	for round := 0; !f.Over; round++ {
		if f.Calm {
			t.Pass(f.Between(1, f.Period/4))
		} else if round > 0 && !f.Often(f.pBurst) {
			t.Pass(f.Between(1, f.think))
		}
		if f.Issues > f.most && !f.Calm {
			t.Pass(f.Period)
		}
		t.kind = f.calls[f.Rng.IntN(len(f.calls))]
		t.floor, t.floorTick = p.largest, p.tick
		if f.mutant != nil && f.mutant.check != nil && !f.mutant.check(p, t) {
			continue
		}
		t.late, t.calling, t.least = t.closed, true, p.noticed
		n, ids := 1, t.batch[:]
		var err error
		switch t.kind {
		case single:
			ids[0], err = p.gen.Next()
		case batched:
			n, err = p.gen.NextN(ids[:1+f.Rng.IntN(f.batch)])
		case streamed:
			if stream == nil {
				stream = p.gen.Stream()
			}
			ids[0], err = stream.Next()
		case bounded:
			ids[0], err = p.bounded(t)
		}
		t.calling = false
		if err != nil && t.kind != batched {
			n = 0
		}
		for _, id := range ids[:n] {
			if t.late {
				f.Fail("close", "%s was closed, and issues %d", p.Name, id)
			}
			f.issued(t, id)
		}
		if err != nil {
			p.err = err
			f.refused(t, err)
			t.Pass(f.Between(f.Period/64+1, f.Period/8+2)) // as a caller who tries again does
		}
	}
}

// bounded issues one ID with a context that ends after some time.
func (p *process) bounded(t *thread) (snowflake.ID, error) {
	f := p.f
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	t.Ctx = ctx
	defer func() { t.Ctx = nil }()
	patience := 2 * f.longest
	if !f.Calm || f.Often(256) {
		patience = f.Between(0, f.Period)
	}
	f.At(patience, func() { t.Cancelled(ctx, cancel) })
	return p.gen.NextContext(ctx)
}

// lock waits for the keeper's mutex.
func (p *process) lock(t *thread) {
	for p.busy {
		p.wait = append(p.wait, t)
		t.Block()
	}
	p.busy = true
}

func (p *process) unlock() {
	p.busy = false
	if n := p.k.Stats().Conflicts; n > p.losses {
		p.f.Losses += int(n - p.losses)
		p.losses, p.lost = n, p.f.Now
	}
	for _, t := range p.wait {
		t.Wake(0)
	}
	p.wait = p.wait[:0]
}

// cancelLoop ends the keeper's loop, and the request that it may be waiting for.
func (p *process) cancelLoop() {
	if p.ctx.Err() == nil {
		p.cancel()
		if p.loop != nil {
			p.loop.CutShort()
			p.loop.Wake(0)
		}
	}
}

// Shutdown closes the process in good order.
func (p *process) Shutdown() {
	if p.closing || p.k == nil || !p.k.Holds() && p.gen == nil {
		return
	}
	p.closing = true
	f := p.f
	f.Shutdowns++
	p.spawn("closer", func(t *thread) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if f.Often(256) {
			f.At(f.Between(0, p.Timeout), func() { cancel(); t.Wake(0) })
		}
		var err error
		if f.mutant != nil && f.mutant.close != nil && p.gen != nil {
			err = f.mutant.close(p, t, ctx)
		} else {
			err = p.close(t, ctx)
		}
		if f.Trace != nil {
			t.Tracef("has closed: %v", err)
		}
		p.sealed = p.k.Window().Front().Sealed
		if p.gen != nil && !p.sealed { // only a mutant would
			p.closing = false
			return
		}
		for _, t := range p.threads { // from now on there are no IDs
			t.closed = p.gen != nil && p.sealed
		}
		t.Pass(f.Between(0, f.Period)) // others may still try
		p.End()
		p.M.StartLater(f.Between(0, f.Period))
	})
}

// close closes the generator, or the keeper. The window is sealed whatever the keeper is
// doing; only then is the keeper's turn waited for.
func (p *process) close(t *thread, ctx context.Context) error {
	t.Hiccup()
	p.k.SealNow()
	t.Hiccup()
	p.cancelLoop()
	p.lock(t)
	defer p.unlock()
	if p.gen != nil && p.f.Often(768) {
		return p.gen.CloseContext(ctx)
	}
	return p.k.CloseContext(ctx)
}

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored() {
	if p.closing || p.gen == nil {
		return
	}
	p.f.Restores++
	p.spawn("restored", func(t *thread) {
		t.Hiccup()
		p.k.Distrust()
		t.Hiccup()
		p.lock(t)
		defer p.unlock()
		_ = p.k.Restored(p.ctx)
	})
}

// hooked is what p's keeper runs: the machine, or a mutant of it. Each of its steps is a place at
// which others come first.
type hooked struct {
	p *process
	m *grant.Machine
}

func (h hooked) Next(in grant.Input) grant.Op {
	h.p.f.Current.Hiccup()
	op := h.m.Next(in)
	if mutant := h.p.f.mutant; mutant != nil && mutant.next != nil {
		mutant.next(h.p, in, &op)
	}
	return op
}

func (h hooked) Done(in grant.Input, op grant.Op, r grant.Result) []grant.Event {
	p, held := h.p, h.m.Held()
	back := op.Why == grant.Doubt && r.Status == grant.OK && r.Cell.Record.Limit < min(held.Limit, p.owned[held.Node]) &&
		!slices.Contains(held.Pending, r.Cell.Record.Write) && !in.Restored
	if mutant := p.f.mutant; mutant != nil && mutant.done != nil {
		mutant.done(h.p, in, &op, &r)
	}
	events := h.m.Done(in, op, r)
	for _, e := range events {
		switch {
		case e.Kind == grant.Suspected && p.f.Rewinds == 0 && p.f.PStale == 0, e.Kind == grant.WentBack && p.f.Rewinds == 0:
			p.f.Fail("went back for no reason", "%s, of node %d, event %d", p.Name, e.Range.Node, e.Kind)
		case e.Kind == grant.WentBack:
			p.f.WentBack++
			p.noticed, p.lost = max(p.noticed, p.owned[e.Range.Node]), p.f.Now
		case e.Kind == grant.Trusted:
			p.f.Trusted++
		}
		back = back && e.Kind != grant.Suspected && e.Kind != grant.WentBack
	}
	if back {
		p.f.Fail("went back unnoticed", "%s was granted node %d up to %s, and reads a limit of %s",
			p.Name, held.Node, p.f.tickText(p.owned[held.Node]), p.f.tickText(r.Cell.Record.Limit))
	}
	p.f.Current.Hiccup()
	return events
}

func (h hooked) Grant() window.Range {
	g := h.m.Grant()
	if mutant := h.p.f.mutant; mutant != nil && mutant.unlimited && g.To > 0 {
		g.To = h.m.End
	}
	return g
}

// Looks is called after each step of one of p's threads. It sees what became of the window,
// and wakes the threads that wait for that.
func (p *process) Looks() {
	k := p.k
	if k == nil || p.Dead {
		return
	}
	if len(k.Window().More()) > 0 && p.loop != nil && p.loop.Asleep() {
		p.loop.CutShort()
	}
	if now := k.Window().Changed(); now != p.changed {
		p.changed = now
		if used := k.Used(); used != p.used {
			if p.used = used; used.To > 0 {
				p.owned[used.Node] = max(p.owned[used.Node], used.To)
				p.f.Grants++
			}
			if p.f.Trace != nil {
				p.f.Tracef("%s: is granted node %d, %s to %s", p.Name, used.Node, p.f.tickText(used.From), p.f.tickText(used.To))
			}
		}
		p.sealed = k.Window().Front().Sealed
		for _, t := range p.threads {
			if t.calling && t.Asleep() && t.isChanged() {
				t.CutShort()
			}
		}
	}
}
