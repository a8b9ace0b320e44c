package generator

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/tickflake/tickflake/internal/window"
)

// queue holds the calls that wait in the machine's time, in the order in which they began
// to wait, so that later calls cannot starve them.
//
// While a call is in the queue, the gate is closed: the fast path fails. Then each caller
// that may find a free slot, the one that slept or a new one, calls serve, which gives the
// free slots to the queue, the first call first. The gate opens when the queue is empty,
// mostly at the start of a tick, and the rest of the tick is issued by the fast path: a
// switch of goroutines for each ID would be too slow. So a waiting call is overtaken only by
// calls that passed the gate before it closed, each once. At the ceiling it waits for as many
// slots as the calls before it want. IDs stay in order, because the slot of a call is taken
// while the call runs.
//
// The gate closes by itself where the clock is due to look for suspends, once a second. The caller
// that finds it so reads the clock, which looks, and opens the gate again.
//
// Invariant: gate is 0 while there is a place in the queue, and else what due returned when it was
// opened. Both change under mu.
type queue struct {
	gate atomic.Uint64 // a reading of the clock at or above it takes no slot
	mu   sync.Mutex
	ring place // its next is the first in the queue, its prev the last
	// spare has places that are not in use, so that a wait does not allocate. It is the
	// generator's own, because a channel belongs to one bubble of testing/synctest.
	spare sync.Pool
}

// place is a call's place in the queue.
type place struct {
	prev, next *place // guarded by mu; nil when it is in no queue
	n          uint64 // how many slots it wants

	// What was taken for it. It is written once, under mu, when the place leaves the queue.
	span      *window.Span
	slot, end uint64
	wake      chan struct{} // capacity 1: receives when the place was served
}

// due is the reading by base at which the clock is to be asked, for it looks for suspends then, or the lifetime.
func (g *Generator) due(base int64) uint64 {
	if g.moved == nil { // every reading asks it
		return g.lifetime
	}
	due := g.moved.Due.Load()
	if due == math.MaxInt64 {
		return g.lifetime
	}
	return min(g.lifetime, uint64(max(base+due, 0)))
}

// open opens the gate. The caller holds mu, or has made g.
func (g *Generator) open() {
	base := int64(0)
	if g.moved != nil {
		// Once, for the gate too: one that has what the clock moved since would stay open for as much longer.
		if base = g.origin + g.moved.By(); base != g.base.Load() {
			g.base.Store(base)
		}
	}
	g.queue.gate.Store(g.due(base))
}

// reopen opens the gate again if now, a reading of the clock, has reached it, or if the clock has moved.
func (g *Generator) reopen(now int64) {
	q := &g.queue
	gate := q.gate.Load()
	if gate == 0 || uint64(now) < gate && (g.moved == nil || g.origin+g.moved.By() == g.base.Load()) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ring.next == &q.ring {
		g.open()
	}
}

// join puts a call that wants n slots at the end of the queue.
func (g *Generator) join(n uint64) *place {
	q := &g.queue
	p, ok := q.spare.Get().(*place)
	if !ok {
		p = &place{wake: make(chan struct{}, 1)}
	}
	p.n = n
	q.mu.Lock()
	defer q.mu.Unlock()
	p.prev, p.next = q.ring.prev, &q.ring
	p.prev.next, p.next.prev = p, p
	q.gate.Store(0)
	return p
}

// serve takes slots for the calls in the queue, in their order, until there is no free
// slot. It reports whether p, which may be nil, was served, now or before.
func (g *Generator) serve(p *place) bool {
	q := &g.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	span, now := g.window.Span(), g.now()
	for first := q.ring.next; first != &q.ring; first = q.ring.next {
		slot, end, ok := g.take(span, now, g.lifetime, first.n)
		if !ok {
			break
		}
		first.span, first.slot, first.end = span, slot, end
		g.remove(first)
		first.wake <- struct{}{}
	}
	return p != nil && p.next == nil
}

// quit gives up a place. Slots that were taken for it at that moment are dropped.
func (g *Generator) quit(p *place) {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	if p.next != nil {
		g.remove(p)
	}
	select {
	case <-p.wake:
	default:
	}
	p.span = nil
	g.queue.spare.Put(p)
}

// remove takes p out of the queue. The caller holds mu.
func (g *Generator) remove(p *place) {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
	if q := &g.queue; q.ring.next == &q.ring {
		g.open()
	}
}
