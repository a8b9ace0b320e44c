package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// process is a program that holds a lease and issues IDs under it: the real Keeper
// and the real Generator.
type process struct {
	*fleettest.Process
	f *fleet

	site     int // whose store it uses
	k        *lease.Keeper
	gen      *generator.Generator
	node     int64 // of WithNode, or -1
	strategy strategies.Strategy
	ctx      context.Context
	cancel   func()
	loop     *fleettest.Thread // or nil
	busy     bool              // the keeper's turn is taken; a thread that waited for the real one would stop all of them
	closed   bool              // a Close has returned

	last   int64 // true time of the latest ID, or 0
	losses uint64

	lost    int64 // true time of the latest loss of a number, or 0
	tick    uint64
	largest snowflake.ID // returned by a call other than a stream's
	excuse  string       // why it need not issue IDs at the moment
	err     error        // the last
}

// caller is a thread that issues IDs.
type caller struct {
	*fleettest.Thread
	p *process

	kind    callKind
	calling bool            // is within a call of the generator
	late    bool            // a Close had returned when it began
	changed <-chan struct{} // of the window, as the generator has it
	stream  *generator.Stream

	floor     snowflake.ID // the largest ID that was returned before the call
	floorTick uint64
	latest    snowflake.ID // of the stream
}

type callKind uint8

const (
	single callKind = iota
	streamed
	bounded
)

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	switch {
	case base.M.ID == f.count:
		return &operator{base, f}
	case base.M.ID > f.count:
		return &archivist{Process: base, f: f}
	}
	p := &process{Process: base, f: f, node: -1, largest: -1}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if f.stores > 1 {
		for p.site = f.Rng.IntN(f.stores); !f.open[p.site]; p.site = f.Rng.IntN(f.stores) {
		}
	}
	f.all = append(f.all, p)
	return p
}

// Main claims a lease, and starts the threads that use it.
func (p *process) Main(t *fleettest.Thread) {
	f := p.f
	k, err := p.newKeeper()
	if err == nil {
		p.k = k
		err = p.claim(t)
	}
	issuers := 0
	if t.Hiccup(); err == nil && !f.Often(16) { // else it is a keeper without a generator
		p.strategy = f.strategies[f.Rng.IntN(len(f.strategies))]
		p.lock(t)
		p.gen, err = generator.New(generator.WithLease(k), generator.WithStrategy(p.strategy))
		p.unlock()
		issuers = 1 + f.Rng.IntN(f.Issuers)
	} else {
		p.excuse = "it issues nothing"
	}
	if err != nil {
		p.failed(t, err)
		return
	}
	p.loop = p.Spawn("keeper", p.keep)
	for i := range issuers {
		c := &caller{p: p, latest: -1}
		p.Issue("issuer "+strconv.Itoa(i), c.issue)
	}
}

func (p *process) client() stores.Store {
	return fleettest.Client{P: p.Process, Prefix: prefix(p.site), Locks: p.f.locking}
}

func (p *process) newKeeper() (*lease.Keeper, error) {
	f := p.f
	window := f.Period
	if f.windows {
		window = f.Between(f.Period/2, 2*f.Period)
	}
	options := []lease.Option{
		lease.WithLayout(f.layout), lease.WithClock(fleettest.Clock{P: p.Process}), lease.WithWindow(max(time.Duration(window), 6*f.layout.Tick)),
		lease.WithLogger(p.Log()), lease.WithOwner(p.Name), lease.WithTimeout(time.Hour),
	}
	if f.strict {
		options = append(options, lease.WithStrictFleetCheck())
	}
	if f.Often(f.pinned) {
		p.node = int64(p.M.ID) % f.numbers()
		options = append(options, lease.WithNode(p.node))
	}
	store := p.client()
	if f.retries {
		store = fleettest.Retrying{Store: store}
	}
	k, err := lease.NewKeeper(store, options)
	if err != nil {
		return nil, err
	}
	// What is left to chance comes from the seed.
	rng := rand.New(rand.NewPCG(f.Rng.Uint64(), 0))
	k.Hook(func() string {
		f.Current.Hiccup() // before each step of the machine
		return strconv.FormatUint(rng.Uint64(), 36)
	}, p.cancelLoop)
	return k, nil
}

// claim is that of package lease; one in two is ready to wait.
func (p *process) claim(t *fleettest.Thread) error {
	f, ctx := p.f, p.ctx
	if f.Calm || f.Often(768) {
		d := fleettest.Never
		if !f.Calm && f.Often(256) {
			d = f.Between(0, 4*f.Period)
		}
		waits, end := t.Within(d)
		defer end()
		ctx = waits
	}
	p.lock(t)
	defer p.unlock()
	return p.k.ClaimFirst(ctx)
}

// failed ends a process that could not start; another one is started later.
func (p *process) failed(t *fleettest.Thread, err error) {
	f := p.f
	t.Tracef("cannot start: %v", err)
	switch {
	case errors.As(err, new(*lease.NoFreeNodeError)), errors.Is(err, lease.ErrStore), errors.Is(err, lease.ErrHeld), errors.Is(err, stores.ErrConflict),
		errors.Is(err, context.Canceled), errors.Is(err, lease.ErrClosed):
	case f.stores > 1 && errors.Is(err, stores.Permanent): // the number has left
	case errors.Is(err, lease.ErrSkew), errors.As(err, new(*stores.OptionError)):
		if f.Calm {
			p.err, p.excuse = err, fmt.Sprintf("%T", err)
			return // nothing will change
		}
	default:
		f.Fail("error", "%s cannot start: %T %v", p.Name, err, err)
	}
	p.Replace(f.Between(f.Period/16, f.Period/2))
}

// keep polls the keeper, or does what the goroutine of Claim does.
func (p *process) keep(t *fleettest.Thread) {
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

// issue makes one call of the generator.
func (c *caller) issue(t *fleettest.Thread, _ int) (err error) {
	p := c.p
	f := p.f
	c.Thread = t
	t.Read = func() {
		if c.calling {
			c.changed = p.k.Window().Changed() // as the generator has it
		}
	}
	t.Changed = func() bool { return c.calling && c.changed != p.k.Window().Changed() }
	c.kind = f.calls[f.Rng.IntN(len(f.calls))]
	c.floor, c.floorTick = p.largest, p.tick
	c.late, c.calling = p.closed, true
	var id snowflake.ID
	switch c.kind {
	case single:
		id, err = p.gen.Next()
	case streamed:
		if c.stream == nil {
			c.stream = p.gen.Stream()
		}
		id, err = c.stream.Next()
	case bounded:
		patience := 2 * f.longest
		if !f.Calm || f.Often(256) {
			patience = f.Between(0, f.Period)
		}
		ctx, end := t.Within(patience)
		id, err = p.gen.NextContext(ctx)
		end()
	}
	c.calling = false
	if err != nil {
		p.err = err
		f.refused(c, err)
		return err
	}
	if c.late {
		f.Fail("close", "%s was closed, and issues %d", p.Name, id)
	}
	f.issued(c, id)
	return nil
}

// lock waits for the keeper's turn.
func (p *process) lock(t *fleettest.Thread) {
	t.Await(func() bool { return !p.busy })
	p.busy = true
}

func (p *process) unlock() {
	p.busy = false
	if n := p.k.Stats().Conflicts; n > p.losses {
		p.f.Tally["losses"] += int(n - p.losses)
		p.losses, p.lost = n, p.f.Now
	}
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

// Ready reports whether p holds a number, or has held one.
func (p *process) Ready() bool { return p.k != nil && (p.k.Held().Version != 0 || p.gen != nil) }

// Close closes p in good order. The window is sealed whatever the keeper is doing; only then is the keeper's turn
// waited for.
func (p *process) Close(t *fleettest.Thread) bool {
	f := p.f
	d := fleettest.Never
	if f.Often(256) {
		d = f.Between(0, p.Timeout)
	}
	ctx, end := t.Within(d)
	defer end()
	t.Hiccup()
	p.k.SealNow()
	t.Hiccup()
	p.cancelLoop()
	p.lock(t)
	defer p.unlock()
	t.Tracef("has closed: %v", p.k.ReleaseNow(ctx))
	p.closed = p.gen != nil // from now on there are no IDs
	return true
}

// Restored is the work of a process that is told that its memory was restored.
func (p *process) Restored(t *fleettest.Thread) {
	t.Hiccup()
	p.k.Distrust()
	t.Hiccup()
	p.lock(t)
	defer p.unlock()
	_ = p.k.Restored(p.ctx)
}

// Step wakes the keeper if it is to look.
func (p *process) Step() {
	if p.k != nil && len(p.k.Window().More()) > 0 && p.loop != nil {
		p.loop.CutShort()
	}
}
