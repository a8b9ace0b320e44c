package generator

import (
	"math"
	"sync"
	"sync/atomic"
)

// tenure is the time in which a generator holds one node number, and the word that
// hands out its slots. Without a lease there is one for good; with one, each node
// number that is granted has its own.
//
// A tenure ends by its next: that is set, once; then free is sealed, so that nobody
// takes another slot of it; then the generator moves on to next, whose slots begin
// above all that were taken here. So order holds over the change, and a caller who
// comes upon the sealed word carries on by itself what was begun.
type tenure struct {
	_ [cacheLine]byte
	// free is the first slot that is not issued: tick<<seqBits | sequence. It
	// only grows, and a slot belongs to whoever moved free past it. That one
	// fact is why no slot is issued twice and why IDs come in order. Sealed, it is
	// above every slot, stays as it is, and shows below the seal what it was.
	free atomic.Uint64
	_    [cacheLine - 8]byte

	// last is the last slot that may be taken without looking at limit, which is
	// the last that is granted. Both only grow. The way from one to the other leads
	// by the lease, so that it hears of it in good time.
	last, limit atomic.Uint64
	next        atomic.Pointer[tenure] // nil until the end of this one

	// begin is where free began, if no slot of the tick before was issued by then:
	// before the first of all, and where floor lies above what was. Else it is no slot.
	begin atomic.Uint64

	// Never written again.
	ids   assembly
	node  int64
	floor uint64 // the first slot that is granted
	ended bool   // the tenure after the last, in which nothing is issued
}

// sealed is the bit of free that ends a tenure. Slots have at most 63 bits.
const sealed = 1 << 63

func (g *Generator) newTenure(grant Grant) *tenure {
	t := &tenure{ids: newAssembly(*g.layout, grant.Node), node: grant.Node, floor: g.slotOf(grant.Floor)}
	t.begin.Store(math.MaxUint64)
	t.limit.Store(g.lastBefore(grant.Limit))
	t.last.Store(min(g.lastBefore(grant.Renew), t.limit.Load()))
	return t
}

// slotOf is the first slot of tick, or the one after the last of all.
func (g *Generator) slotOf(tick uint64) uint64 { return min(tick, g.last>>g.seqBits+1) << g.seqBits }

// lastBefore is the last slot before tick, which is the last of its tick; for 0,
// which no grant ends at, it is that of tick 0.
func (g *Generator) lastBefore(tick uint64) uint64 { return g.slotOf(max(tick, 1)) - 1 }

// succeed carries out the change from t to its next, which is set. Any number of
// callers may do that at once.
func (g *Generator) succeed(t *tenure) {
	free := t.free.Or(sealed) &^ sealed
	next := t.next.Load()
	// The first to come opens the word; until then it is 0, and nobody takes
	// slots of a tenure that is not the generator's yet.
	first := max(g.tickEnd(free), next.floor)
	if first > g.tickEnd(free) || free == t.begin.Load() {
		next.begin.Store(first) // all who come say the same
	}
	if next.ended {
		first |= sealed
	}
	next.free.CompareAndSwap(0, first)
	g.tenure.CompareAndSwap(t, next)
}

// tickEnd is the first slot, from free on, that begins a tick.
func (g *Generator) tickEnd(free uint64) uint64 { return (free + g.sequence) &^ g.sequence }

// seal ends the generator, and returns the first tick of which, as of all after it,
// no slot was taken, and whether this call was the one that did it.
func (g *Generator) seal() (end uint64, first bool) {
	for {
		t := g.tenure.Load()
		if t.ended {
			return 0, false
		}
		over := &tenure{node: t.node, ended: true}
		over.limit.Store(t.limit.Load())
		first := t.next.CompareAndSwap(nil, over)
		g.succeed(t)
		if first {
			close(g.done)
			return g.tickEnd(t.free.Load()&^sealed) >> g.seqBits, true
		}
	}
}

// open lets slots up to slot be taken without a look at the limit, which is not
// below it.
func (t *tenure) open(slot uint64) {
	for last := t.last.Load(); last < slot && !t.last.CompareAndSwap(last, slot); last = t.last.Load() {
	}
}

// holder is what a lease sees of its generator.
type holder struct {
	g  *Generator
	mu sync.Mutex // held by New until the generator holds its first grant
}

func (h *holder) Grant(grant Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.g
	for {
		t := g.tenure.Load()
		switch {
		case t.ended:
			return
		case t.next.Load() != nil:
			g.succeed(t)
			continue
		case grant.Node == t.node && g.slotOf(grant.Floor) <= t.limit.Load()+1:
			limit := max(g.lastBefore(grant.Limit), t.limit.Load())
			t.limit.Store(limit) // nobody else does
			t.open(min(g.lastBefore(grant.Renew), limit))
		case t.next.CompareAndSwap(nil, g.newTenure(grant)):
			g.succeed(t)
		default:
			continue
		}
		g.news.tell()
		return
	}
}

func (h *holder) Tick() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.g
	return g.tickEnd(g.tenure.Load().free.Load()&^sealed) >> g.seqBits
}

func (h *holder) Seal() (end uint64, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.g.seal()
}

// news tells those who wait for a grant that there is one. The zero news is ready.
type news struct {
	mu sync.Mutex
	ch chan struct{} // closed by the next grant, or nil when nobody waits
}

// wait returns what is closed by the next grant.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}
