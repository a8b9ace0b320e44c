package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/fleettest"
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
	limit   uint64           // of it
	owned   map[int64]uint64 // by node number: the highest limit that it was granted
	noticed uint64           // once it noticed that the store went back: no tick below

	first, last int64 // true time of the first and the latest ID, or 0
	losses      uint64
	lost        int64 // true time of the latest loss of a number, or 0
	tick        uint64
	largest     snowflake.ID // returned by a call other than a stream's
	excuse      string       // why it need not issue IDs at the moment
	err         error        // the last
}

// thread is one of a process's threads.
type thread struct {
	*fleettest.Thread
	f *fleet
	p *process
	issuer
}

func (f *fleet) launch(base *fleettest.Process) fleettest.Program {
	p := &process{Process: base, f: f, node: -1, largest: -1, owned: map[int64]uint64{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.OnEnd = func() { f.unlock(p) }
	f.all = append(f.all, p)
	return p
}

// Begin starts the first thread.
func (p *process) Begin() { p.spawn("main", p.main) }

func (p *process) spawn(name string, body func(*thread)) *thread {
	t := &thread{f: p.f, p: p, issuer: issuer{latest: -1}}
	t.Thread = p.Process.Spawn(name, func(*fleettest.Thread) { body(t) })
	t.Self = t
	t.Changed = func() bool { return t.calling && t.isChanged() }
	p.threads = append(p.threads, t)
	return t
}

// current is the thread that runs, or nil.
func (f *fleet) current() *thread {
	if f.Current == nil {
		return nil
	}
	return f.Current.Self.(*thread)
}

// virtualClock is a process's view of its machine's clock.
type virtualClock struct {
	fleettest.Clock
	p *process
}

func (c virtualClock) Now() time.Time {
	if t := c.p.f.current(); t != nil && !t.Dead() {
		if t.calling {
			t.changed, t.limit = c.p.k.Window().Changed(), c.p.limit // as the generator has it
		}
		t.Hiccup()
		t.looked()
	}
	return c.Clock.Now()
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
	if f.Often(16) { // a keeper without a generator
		p.spawnAll(0)
		return
	}
	p.strategy = f.strategies[f.Rng.IntN(len(f.strategies))]
	p.lock(t)
	p.gen, err = generator.New(generator.WithLease(k), generator.WithStrategy(p.strategy))
	p.unlock()
	if err != nil {
		p.failed(t, err)
		return
	}
	p.spawnAll(1 + f.Rng.IntN(f.issuers))
}

func (p *process) spawnAll(issuers int) {
	p.loop = p.spawn("keeper", p.keep)
	for i := range issuers {
		p.spawn("issuer "+strconv.Itoa(i), p.issue)
	}
	if issuers == 0 {
		p.excuse = "it issues nothing"
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
		options = append(options, lease.WithNode(lease.NodeNumber(p.node)))
	}
	var store stores.Store = p.client()
	if f.locking {
		store = lockingClient{p.client(), f, p}
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
	k.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) }, p.protocol, p.cancelLoop)
	return k, nil
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
		p.closed()
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

// closed notes that a Close has returned: from now on there are no IDs.
func (p *process) closed() {
	for _, t := range p.threads {
		t.closed = p.gen != nil && p.sealed
	}
}
