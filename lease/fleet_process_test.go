package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// process is a program on a machine.
type process struct {
	f       *fleet
	m       *machine
	name    string
	started time.Time
	site    int           // whose store it uses
	timeout time.Duration // of a call of the store
	ctx     context.Context
	cancel  func()
	way     *way
	gone    chan struct{} // closed when another process may start on the machine
	leave   func()        // closes it

	// Of a process that issues IDs, once it has a number.
	k    *lease.Keeper
	gen  *generator.Generator // nil if it is a keeper alone
	node int64                // of WithNode, or -1

	stopped time.Time // until then it does not run
	dead    bool
	closed  bool // a Close has returned

	last    time.Time    // of the latest ID
	tick    uint64       // the latest
	largest snowflake.ID // returned by a call other than a stream's
	excuse  string       // why it need not issue IDs at the moment
	err     error        // the last
}

// clock is a process's view of its machine's.
type clock struct {
	*clocktest.Virtual
	p *process
}

// Now reads the wall clock. Others may come before.
func (c clock) Now() time.Time {
	c.p.hiccup()
	return c.Virtual.Now()
}

// process makes one on a machine.
func (f *fleet) process(m *machine) *process {
	p := &process{f: f, m: m, started: time.Now(), timeout: f.between(f.period/20, f.period), gone: make(chan struct{}), node: -1, largest: -1}
	for p.site = int(f.between(0, time.Duration(len(f.stores)))); f.stores[p.site].Peek("layout").Version == 0 && p.site > 0; p.site-- {
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.leave = sync.OnceFunc(func() { close(p.gone) })
	p.way = f.way(p, p.site)
	f.mu.Lock()
	p.name = fmt.Sprintf("%d.%d", m.id, len(f.all))
	f.all, m.p = append(f.all, p), p
	f.mu.Unlock()
	if is(f, &f.over) { // play has not seen it
		p.end()
	}
	return p
}

// way is that of a process to the store of a site.
func (f *fleet) way(p *process, site int) *way {
	w := &way{f.stores[site].Client(), p, site}
	w.Before, w.After = w.before, w.after
	return w
}

// runs has one process after the other on a machine.
func (f *fleet) runs(m *machine) {
	for time.Sleep(f.between(0, f.period)); !is(f, &f.over); time.Sleep(f.pause()) {
		if !f.isFull() {
			p := f.process(m)
			p.main()
			<-p.gone
		}
	}
}

// pause is how long a machine has no process.
func (f *fleet) pause() time.Duration {
	if is(f, &f.calm) {
		return f.between(0, f.period/10)
	}
	return pickOf(f, []time.Duration{0, f.between(0, f.period/4), f.between(0, 4*f.period)})
}

// isFull reports whether there are as many processes as there are numbers for, once the faults are over.
func (f *fleet) isFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, p := range f.all {
		if !p.dead && p.m.id < f.count {
			n++
		}
	}
	return f.calm && n >= int(f.numbers())
}

// main claims a lease, and starts the threads that use it.
func (p *process) main() {
	f := p.f
	window := f.period
	if f.windows {
		window = f.between(f.period/2, 2*f.period)
	}
	options := []lease.Option{lease.WithLayout(f.layout), lease.WithClock(clock{p.m.clock, p}), lease.WithWindow(max(window, 6*f.layout.Tick)),
		lease.WithLogger(f.log(p.name)), lease.WithOwner(p.name), lease.WithTimeout(p.timeout)}
	if f.often(f.pinned) {
		p.node = int64(p.m.id) % f.numbers()
		options = append(options, lease.WithNode(p.node))
	}
	var store stores.Store = p.way
	switch {
	case f.retries:
		store = retrying{p.way}
	case f.locking:
		store = lockingWay{p.way}
	}
	ctx := p.ctx
	if calm := is(f, &f.calm); calm || f.often(768) { // it is ready to wait
		d := 1000 * time.Hour
		if !calm && f.often(256) {
			d = f.between(0, 4*f.period)
		}
		waits, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = waits
	}
	k, err := lease.Claim(ctx, store, options...)
	var gen *generator.Generator
	if err == nil && !f.often(16) { // else it is a keeper without a generator
		gen, err = generator.New(generator.WithLease(k), generator.WithStrategy(pickOf(f, f.strategies)))
	}
	f.mu.Lock()
	p.k, p.gen = k, gen
	if gen == nil {
		p.excuse = "it issues nothing"
	}
	dead := p.dead
	f.mu.Unlock()
	switch {
	case dead && k != nil: // meanwhile
		_ = k.Close()
	case err != nil:
		p.failed(err)
	case gen != nil:
		for range 1 + f.between(0, time.Duration(f.issuers)) {
			f.work.Go(p.issue)
		}
	}
}

// failed ends a process that could not start.
func (p *process) failed(err error) {
	f := p.f
	f.tracef("%s: cannot start: %v", p.name, err)
	switch {
	case errors.As(err, new(*lease.NoFreeNodeError)), errors.Is(err, lease.ErrStore), errors.Is(err, lease.ErrHeld), errors.Is(err, stores.ErrConflict),
		errors.Is(err, context.Canceled), errors.Is(err, lease.ErrClosed), errors.As(err, new(*stores.OptionError)):
	case f.operated && errors.Is(err, stores.Permanent): // the number has left
	default:
		f.fail("error", "%s cannot start: %T %v", p.name, err, err)
	}
	p.end()
}

// end ends a process wherever it is: its calls of the store fail from now on, and what it has sent may still arrive.
func (p *process) end() {
	p.f.mu.Lock()
	dead, k := p.dead, p.k
	p.dead = true
	p.f.mu.Unlock()
	if dead {
		return
	}
	p.f.tracef("%s: ends", p.name)
	p.cancel()
	p.way.Crash()
	p.leave()
	if k != nil {
		p.f.work.Go(func() { _ = k.Close() }) // for its goroutine
	}
}

// shutdown closes a process in good order, and ends it after some time: others may still try.
func (p *process) shutdown() {
	f := p.f
	ctx, cancel := context.WithCancel(context.Background())
	if f.often(256) {
		ctx, cancel = context.WithTimeout(ctx, f.between(0, p.timeout))
	}
	defer cancel()
	f.tracef("%s: has closed: %v", p.name, p.k.CloseContext(ctx))
	f.mu.Lock()
	p.closed = true
	f.mu.Unlock()
	time.Sleep(f.between(0, f.period))
	p.end()
}

// stop keeps a process from running.
func (p *process) stop(until time.Time) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if until.After(p.stopped) && !p.f.calm {
		p.stopped = until
	}
}

// hiccup is where a process may be held up, or a call of it alone: for a moment, or for a long time.
func (p *process) hiccup() {
	f := p.f
	if is(f, &f.calm) || is(f, &p.dead) {
		return
	}
	if f.often(64) {
		time.Sleep(f.between(0, f.period/64))
	}
	if f.often(f.pPause) {
		until := time.Now().Add(f.between(0, 3*f.period))
		if f.counts("pauses", 1); f.often(512) {
			p.stop(until)
		}
		time.Sleep(time.Until(until))
	}
	if f.between(0, 4096) < time.Duration(f.pDie) {
		f.counts("crashes", 1)
		p.end()
	}
	for time.Now().Before(is(f, &p.stopped)) {
		time.Sleep(min(time.Until(is(f, &p.stopped)), f.period/4))
	}
}

// issue makes calls of the generator.
func (p *process) issue() {
	f := p.f
	stream, latest := p.gen.Stream(), snowflake.ID(-1)
	for first := true; ; first = false {
		switch {
		case is(f, &f.calm):
			time.Sleep(f.between(1, f.period/4))
		case !first && !f.often(f.pBurst):
			time.Sleep(f.between(1, f.think))
		}
		if !is(f, &f.calm) && is(f, &f.made) > f.most {
			time.Sleep(f.period)
		}
		p.hiccup()
		f.mu.Lock()
		floor, tick, late, dead := p.largest, p.tick, p.closed, p.dead
		f.mu.Unlock()
		if dead {
			return
		}
		var id snowflake.ID
		var err error
		kind := pickOf(f, f.calls)
		switch kind {
		case "single":
			id, err = p.gen.Next()
		case "streamed":
			id, err = stream.Next()
		case "bounded":
			patience := 2 * f.longest
			if !is(f, &f.calm) || f.often(256) {
				patience = f.between(0, f.period)
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			id, err = p.gen.NextContext(ctx)
			cancel()
		}
		switch {
		case err != nil:
			p.refused(err, late)
			time.Sleep(f.between(f.period/64+1, f.period/8+2)) // as a caller who tries again does
			continue
		case late:
			f.fail("close", "%s was closed, and issues %d", p.name, id)
		case kind != "streamed" && id <= floor:
			f.fail("order", "%s issues %d, after %d was returned", p.name, id, floor)
		case kind == "streamed" && (id <= latest || f.tickOf(id) < tick):
			f.fail("order of a stream", "%s issues %d after %d and tick %d", p.name, id, latest, tick)
		}
		if kind == "streamed" {
			latest = id
		}
		p.issued(id, kind)
	}
}

func (f *fleet) tickOf(id snowflake.ID) uint64 {
	return uint64(id) >> (f.layout.NodeBits + f.layout.SequenceBits)
}

// issued checks an ID that a call returned.
func (p *process) issued(id snowflake.ID, kind string) {
	f := p.f
	node, tick := must(f.layout.Decode(id)).Node, f.tickOf(id)
	f.tracef("%s: issues tick %d of node %d, ID %d", p.name, tick, node, id)
	f.mu.Lock()
	undone := slices.ContainsFunc(f.undone[node], func(s [2]uint64) bool { return s[0] <= tick && tick < s[1] })
	again, past, limit := f.ids[id], f.given[node], f.limit(p.site, node)
	f.ids[id] = true
	f.made++
	f.tally["issued"]++
	if p.site > 0 {
		f.tally["IDs of a new site"]++
	}
	p.last, p.tick, p.excuse = time.Now(), max(p.tick, tick), ""
	if kind != "streamed" {
		p.largest = max(p.largest, id)
	}
	has := f.has[p.site].Has(node)
	f.mu.Unlock()
	switch {
	case past:
		f.fail("past number", "%s issues tick %d of node %d, which was given to the past", p.name, tick, node)
	case !has:
		f.fail("another site's number", "%s issues tick %d of node %d on site %d", p.name, tick, node, p.site)
	case again && !undone: // a process that came after the store went back could not know
		f.fail("duplicate", "%s issues tick %d of node %d, ID %d, a second time", p.name, tick, node, id)
	case tick >= limit && !undone:
		f.fail("ID beyond the limit", "%s issues tick %d of node %d, whose limit is %d", p.name, tick, node, limit)
	}
}

// refused checks an error that a call returned.
func (p *process) refused(err error, late bool) {
	f := p.f
	f.tracef("%s: %v", p.name, err)
	var none *generator.GrantError
	var lead *generator.LeadError
	ended := errors.Is(err, context.DeadlineExceeded)
	if late && !errors.Is(err, generator.ErrClosed) && !ended {
		f.fail("close", "%s was closed, and fails with %v", p.name, err)
	}
	f.mu.Lock()
	p.err = err
	f.tally["refusals"]++
	excuse := p.excuse
	known := true
	switch {
	case errors.As(err, &none):
		f.tally["without a grant"]++
		if none.Past > 0 {
			f.tally["ended"]++
		}
		excuse = ""
	case errors.As(err, &lead):
		if lead.Lead > lead.Limit {
			excuse = "its clock is behind"
		}
	default:
		known = ended || errors.Is(err, generator.ErrClosed)
	}
	p.excuse = excuse
	f.mu.Unlock()
	if !known {
		f.fail("error", "%s: %T %v", p.name, err, err)
	}
}

// checkLiveness makes sure that a process that can has issued an ID within the bound.
func (f *fleet) checkLiveness(p *process) {
	since := time.Now().Add(-f.bound())
	f.mu.Lock()
	last, err, dead, excuse, started := p.last, p.err, p.dead || p.closed, p.excuse, p.started
	f.mu.Unlock()
	switch {
	case dead, started.After(since):
	case last.After(since):
		f.counts("live", 1)
	case p.node >= 0 && (errors.Is(p.k.Err(), lease.ErrLost) || errors.Is(p.k.Err(), lease.ErrHeld)):
		f.counts("excused: another has its number", 1)
	case excuse != "":
		f.counts("excused: "+excuse, 1)
	default:
		f.fail("liveness", "%s has issued nothing for %s: its keeper has node %d, and %v; last error %v", p.name, time.Since(last), p.k.Node(), p.k.Err(), err)
	}
}
