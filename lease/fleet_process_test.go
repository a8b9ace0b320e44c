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
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
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

	changed <-chan struct{}  // of the window, when it was looked at last
	used    window.Range     // that the window was granted last
	owned   map[int64]uint64 // by node number: the highest limit that it was granted
	held    grant.Held       // by the machine, the last one
	back    *goneBack        // the keeper is about to notice it, or nil
	noticed uint64           // once it noticed that the store went back: no tick below

	last   int64 // true time of the latest ID, or 0
	losses uint64

	suspects bool   // the machine does
	wentBack uint64 // times that it noticed that the store went back

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
	least   uint64          // that the process had noticed by then
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
	p := &process{Process: base, f: f, node: -1, largest: -1, owned: map[int64]uint64{}}
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
	store := stores.Store(witness{p.client(), p})
	if f.mutant != nil && f.mutant.store != nil {
		store = f.mutant.store(p, store)
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
	if f.mutant != nil && f.mutant.check != nil && !f.mutant.check(p) {
		return nil
	}
	c.late, c.calling, c.least = p.closed, true, p.noticed
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

// witness is a process's way to the store. It knows when the keeper is to notice that the store went back.
type witness struct {
	stores.Store
	p *process
}

func (w witness) Read(ctx context.Context, key string) (stores.Cell, error) {
	found, err := w.Store.Read(ctx, key)
	p, m := w.p, w.p.k.Machine()
	held, r := m.Held(), recordOf(found.Value)
	if err == nil && held.Version != 0 && key == cell.NodeKey(held.Node) && !m.Suspects() &&
		r.Limit < min(held.Limit, p.owned[held.Node]) && !slices.Contains(held.Pending, r.Write) {
		p.back = &goneBack{limit: r.Limit, token: m.Token()}
	}
	return found, err
}

// goneBack is what the keeper has read in its cell.
type goneBack struct {
	limit uint64
	token string // the machine's: it forgets with a restored memory
}

// seeBack makes sure that the keeper notices that the store went back, if it did, and only then.
func (p *process) seeBack() {
	f, m := p.f, p.k.Machine()
	held, suspects, wentBack := m.Held(), m.Suspects(), p.k.Counts().WentBack
	noticed, trusted := wentBack > p.wentBack, p.suspects && !suspects && held.Version != 0
	switch {
	case noticed && f.Tally["rewinds"] == 0, suspects && !p.suspects && f.Tally["rewinds"] == 0 && f.PStale == 0:
		f.Fail("went back for no reason", "%s, of node %d", p.Name, p.held.Node)
	case noticed:
		f.Tally["went back"]++
		p.noticed, p.lost = max(p.noticed, p.owned[p.held.Node]), f.Now
	case trusted:
		f.Tally["trusted"]++
	}
	if back := p.back; back != nil && (suspects || m.Rests() || held.Version == 0) { // the machine knows what was read
		if p.back = nil; !suspects && !noticed && m.Token() == back.token {
			f.Fail("went back unnoticed", "%s was granted node %d up to %s, and reads a limit of %s",
				p.Name, p.held.Node, f.tickText(p.owned[p.held.Node]), f.tickText(back.limit))
		}
	}
	p.suspects, p.wentBack = suspects, wentBack
	if held.Version != 0 {
		p.held = held
	}
}

// Step sees what became of the window after a step of a thread, and wakes the keeper if it is to look, too.
func (p *process) Step() {
	if p.k == nil {
		return
	}
	if len(p.k.Window().More()) > 0 && p.loop != nil {
		p.loop.CutShort()
	}
	p.seeBack()
	if p.k.Window().Changed() != p.changed {
		if used := p.k.Used(); used != p.used {
			if p.used = used; used.To > 0 {
				p.owned[used.Node] = max(p.owned[used.Node], used.To)
				p.f.Tally["grants"]++
				if m := p.f.mutant; m != nil && m.unlimited {
					p.k.Window().Grant(window.Range{Node: used.Node, From: used.From, To: 1 << p.f.layout.TimeBits}, used.To)
				}
			}
			p.f.Tracef("%s: is granted node %d, %d to %d", p.Name, used.Node, used.From, used.To)
		}
		p.changed = p.k.Window().Changed()
	}
}
