package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// process is a program that holds a lease and issues IDs under it: the real Keeper
// and the real Generator.
type process struct {
	f       *fleet
	m       *machine
	name    string
	threads []*thread

	k        *lease.Keeper
	gen      *generator.Generator
	node     int64 // of WithNode, or -1
	strategy strategies.Strategy
	timeout  int64 // of a request
	ctx      context.Context
	cancel   func()
	loop     *thread

	busy bool // the keeper's mutex is held; a thread that waited for the real one would stop all of them
	wait []*thread

	dead    bool
	closing bool
	sealed  bool
	stopped int64 // true time before which it does not run

	changed  <-chan struct{}  // of the window, when it was looked at last
	used     window.Range     // that the window was granted last
	limit    uint64           // of it
	owned    map[int64]uint64 // by node number: the highest limit that it was granted
	notices  uint64           // the same, before it has taken back what is left of its grant
	noticed  uint64           // once it noticed that the store went back: no tick below
	truth    uint64           // of a mutant: the limit that the store has
	requests int

	started     int64
	first, last int64 // true time of the first and the latest ID, or 0
	losses      uint64
	lost        int64 // true time of the latest loss of a number, or 0
	tick        uint64
	largest     snowflake.ID // returned by a call other than a stream's
	excuse      string       // why it need not issue IDs at the moment
	err         error        // the last
}

func (m *machine) start() {
	f := m.f
	if len(f.all) >= f.mostProcesses && !f.calm || f.calm && int64(f.alive()) >= f.numbers() {
		return
	}
	m.started++
	p := &process{f: f, m: m, name: fmt.Sprintf("%d.%d", m.id, m.started), started: f.now, node: -1, largest: -1, timeout: f.between(f.period/20, f.period), owned: map[int64]uint64{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	m.p = p
	f.all = append(f.all, p)
	f.spawn(p, "main", p.main)
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
	t.hiccup()
	if f.often(16) { // a keeper without a generator
		p.spawnAll(0)
		return
	}
	p.strategy = f.strategies[f.rng.IntN(len(f.strategies))]
	p.lock(t)
	p.gen, err = generator.New(generator.WithLease(k), generator.WithStrategy(p.strategy))
	p.unlock()
	if err != nil {
		p.failed(t, err)
		return
	}
	p.spawnAll(1 + f.rng.IntN(f.issuers))
}

func (p *process) spawnAll(issuers int) {
	f := p.f
	p.loop = f.spawn(p, "keeper", p.keep)
	for i := range issuers {
		f.spawn(p, "issuer "+strconv.Itoa(i), p.issue)
	}
	if issuers == 0 {
		p.excuse = "it issues nothing"
	}
}

func (p *process) newKeeper() (*lease.Keeper, error) {
	f := p.f
	log := slog.DiscardHandler
	if f.trace != nil {
		log = traceHandler{p}
	}
	window := f.period
	if f.windows {
		window = f.between(f.period/2, 2*f.period)
	}
	options := []lease.Option{
		lease.WithLayout(f.layout), lease.WithClock(virtualClock{p}), lease.WithWindow(max(time.Duration(window), 6*f.layout.Tick)),
		lease.WithLogger(slog.New(log)), lease.WithOwner(p.name), lease.WithTimeout(time.Hour), lease.WithFleetCheck(time.Minute, f.strict),
	}
	if f.pinned != 0 && (f.pinned == pinnedAll || f.often(512)) {
		p.node = int64(p.m.id) % f.numbers()
		options = append(options, lease.WithNode(lease.NodeNumber(p.node)))
	}
	var store stores.Store = client{p}
	if f.locking {
		store = lockingClient{client{p}}
	}
	if f.mutant != nil && f.mutant.store != nil {
		store = f.mutant.store(p, store)
	}
	k, err := lease.NewKeeper(store, options)
	if err != nil {
		return nil, err
	}
	// What is left to chance comes from the seed.
	rng := rand.New(rand.NewPCG(f.rng.Uint64(), 0))
	k.Hook(func() string { return strconv.FormatUint(rng.Uint64(), 36) }, p.decides, p.cancelLoop)
	return k, nil
}

// claim is that of package lease; one in two is ready to wait.
func (p *process) claim(t *thread) error {
	f := p.f
	ctx, cancel := context.WithCancel(context.Background())
	if f.calm || f.often(768) {
		ctx, cancel = context.WithTimeout(context.Background(), time.Hour)
	}
	defer cancel()
	t.ctx = ctx
	defer func() { t.ctx = nil }()
	if !f.calm && f.often(256) {
		f.at(f.between(0, 4*f.period), func() {
			if !f.calm {
				t.cancelled(ctx, cancel)
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
	if f.trace != nil {
		t.tracef("cannot start: %v", err)
	}
	switch {
	case errors.As(err, new(*lease.NoFreeNodeError)), errors.Is(err, lease.ErrStore), errors.Is(err, lease.ErrHeld), errors.Is(err, stores.ErrConflict),
		errors.Is(err, context.Canceled), errors.Is(err, lease.ErrClosed):
	case errors.Is(err, lease.ErrEndOfTime), errors.Is(err, lease.ErrSkew), errors.As(err, new(*lease.OptionError)), errors.As(err, new(*generator.ConfigError)):
		if f.calm {
			p.err, p.excuse = err, fmt.Sprintf("%T", err)
			return // nothing will change
		}
	default:
		f.fail("error", "%s cannot start: %T %v", p.name, err, err)
	}
	p.end()
	p.m.startLater(f.between(f.period/16, f.period/2))
}

// keep polls the keeper, or does what the goroutine of Claim does.
func (p *process) keep(t *thread) {
	for p.ctx.Err() == nil {
		p.lock(t)
		next := p.k.Poll(p.ctx)
		p.unlock()
		t.cut = false
		if len(p.k.Window().More()) == 0 {
			t.sleep(next)
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
		t.block()
	}
	p.busy = true
}

func (p *process) unlock() {
	p.busy = false
	if n := p.k.Stats().Conflicts; n > p.losses {
		p.losses, p.lost = n, p.f.now
	}
	for _, t := range p.wait {
		p.f.wake(t, 0)
	}
	p.wait = p.wait[:0]
}

// cancelLoop ends the keeper's loop, and the request that it may be waiting for.
func (p *process) cancelLoop() {
	if p.ctx.Err() == nil {
		p.cancel()
		if p.loop != nil {
			p.loop.cutShort()
			p.f.wake(p.loop, 0)
		}
	}
}

// stop keeps all threads of p from running for d.
func (p *process) stop(d int64) {
	p.stopped = max(p.stopped, p.f.now+d)
	p.f.note(uint64(p.stopped))
	if p.f.trace != nil {
		p.f.tracef("%s: stopped until %s", p.name, time.Duration(p.stopped))
	}
}

// crash ends a process wherever it is. Its requests may still arrive.
func (p *process) crash(why string) {
	if p.dead {
		return
	}
	p.f.crashes++
	p.f.tracef("%s: crashes, %s", p.name, why)
	p.end()
	if !p.f.calm {
		p.m.startLater([...]int64{0, p.f.between(0, p.f.period/4), p.f.between(0, 4*p.f.period)}[p.f.rng.IntN(3)])
	}
}

// end takes a process away.
func (p *process) end() {
	p.dead = true
	for key, token := range p.f.store.locks {
		if token.by == p {
			delete(p.f.store.locks, key)
		}
	}
	p.f.at(0, p.unwind) // not by a thread of its own
}

func (p *process) unwind() {
	p.dead = true
	for _, t := range p.threads {
		if !t.ended {
			t.stop()
			t.ended = true
		}
	}
}

// shutdown closes the process in good order.
func (p *process) shutdown() {
	if p.closing || p.k == nil || p.k.Held() == nil && p.gen == nil {
		return
	}
	p.closing = true
	f := p.f
	f.shutdowns++
	f.spawn(p, "closer", func(t *thread) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if f.often(256) {
			f.at(f.between(0, p.timeout), func() { cancel(); f.wake(t, 0) })
		}
		var err error
		if f.mutant != nil && f.mutant.close != nil && p.gen != nil {
			err = f.mutant.close(p, t, ctx)
		} else {
			err = p.close(t, ctx)
		}
		if f.trace != nil {
			t.tracef("has closed: %v", err)
		}
		p.sealed = p.k.Window().Front().Sealed
		if p.gen != nil && !p.sealed { // only a mutant would
			p.closing = false
			return
		}
		p.closed()
		t.pass(f.between(0, f.period)) // others may still try
		p.end()
		p.m.startLater(f.between(0, f.period))
	})
}

// close closes the generator, or the keeper. The window is sealed whatever the keeper is
// doing; only then is the keeper's turn waited for.
func (p *process) close(t *thread, ctx context.Context) error {
	t.hiccup()
	p.k.SealNow()
	t.hiccup()
	p.cancelLoop()
	p.lock(t)
	defer p.unlock()
	if p.gen != nil && p.f.often(768) {
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
