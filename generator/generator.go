package generator

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Generator issues IDs. Make one with [New] and share it: its methods are safe
// for use by any number of goroutines, and one is enough for a process. The zero
// Generator is not usable.
//
// The methods that issue IDs are doors to the same core, and differ in what the
// caller has at hand:
//
//   - [Generator.Next] for one ID. Most callers want this.
//   - [Generator.NextContext] for one ID in a request that may be given up.
//   - [Generator.NextN] for many at once, as in a bulk import.
//   - [Generator.Stream] for a goroutine that issues IDs all the time and must
//     not share a cache line with others, and [Generator.All] for the same as an
//     iterator.
//
// An ID returned by Next, NextContext or NextN before another call of them
// begins is smaller than any that the other call returns, whatever the clock
// does. Streams weaken that in ways their doc states.
type Generator struct {
	// Set by New and never written again.
	clock    Clock
	nanos    nanoClock // reads clock
	epoch    int64     // Unix nanoseconds
	tickNs   int64
	perTick  divisor // divides by tickNs
	lifetime uint64  // nanoseconds from the epoch to issuingEnd
	last     uint64  // the last slot of the time field
	sequence uint64  // mask of the sequence in a slot
	allowed  uint64  // ticks ahead of the clock that the strategy always borrows
	seqBits  uint8
	start    strategies.SequenceStart
	strategy strategies.Strategy
	layout   *snowflake.Layout
	lease    Lease                                // or nil
	after    func(time.Duration) <-chan time.Time // how to wait for a clock that is not the machine's, or nil
	elapsed  func() time.Duration                 // by what a wait that was cut short is measured

	done chan struct{} // closed by Close, to wake those who wait
	turn chan struct{} // capacity 1: held by the one caller that sleeps for the next tick

	// tenure is the node number that is held now, with its word. It moves from a
	// tenure to that one's next, after it was sealed, and never back.
	tenure atomic.Pointer[tenure]
	news   news // of grants

	_        [cacheLine]byte
	counters counters
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Those with longer lines lose some speed, and nothing else.
const cacheLine = 64

// MaxBatch is the longest slice that [Generator.NextN] takes: 16,777,216 IDs.
const MaxBatch = 1 << 24

// assembly puts IDs together from slots without branching on the field order.
type assembly struct {
	high, low uint64 // masks of the slot's bits above and below the node
	node      uint64 // the node number in its place
	shift     uint8  // how far the bits above are shifted: the node's width
}

func (a assembly) id(slot uint64) snowflake.ID {
	return snowflake.ID(slot&a.high<<(a.shift&63) | slot&a.low | a.node)
}

func newAssembly(l snowflake.Layout, node int64) assembly {
	if l.Order == snowflake.TimeSequenceNode {
		return assembly{high: math.MaxUint64, node: uint64(node), shift: uint8(l.NodeBits)}
	}
	sequence := uint64(1)<<l.SequenceBits - 1
	return assembly{high: ^sequence, low: sequence, node: uint64(node) << l.SequenceBits, shift: uint8(l.NodeBits)}
}

// New returns a generator. Without options it issues IDs of [snowflake.Default] on
// node 0, timed by a [monoclock.Clock], and waits up to a second when it has to.
//
// It fails with a [*ConfigError] that names the option and the numbers when an
// option is out of range or nil, when the layout is not valid, and when the
// clock's time lies before the layout's epoch or after its end. Whatever the
// layout, no generator issues IDs after April 11, 2262, where the nanoseconds
// since 1970 no longer fit in 64 bits.
func New(opts ...Option) (*Generator, error) {
	c, now, err := configure(opts)
	if err != nil {
		return nil, err
	}
	g := &Generator{
		clock:    c.clock,
		nanos:    nanosOf(c.clock),
		epoch:    c.layout.Epoch.UnixNano(),
		tickNs:   int64(c.layout.Tick),
		perTick:  newDivisor(uint64(c.layout.Tick)),
		lifetime: uint64(issuingEnd(c.layout).Sub(c.layout.Epoch)),
		seqBits:  uint8(c.layout.SequenceBits),
		sequence: 1<<c.layout.SequenceBits - 1,
		start:    c.start,
		strategy: c.strategy,
		layout:   &c.layout,
		lease:    c.lease,
		done:     make(chan struct{}),
		turn:     make(chan struct{}, 1),
	}
	g.after, g.elapsed = afterOf(c.clock), elapsedOf(c.clock)
	g.last = g.tick(int64(g.lifetime-1))<<g.seqBits | g.sequence
	g.allowed = g.tick(int64(strategies.BorrowLimit(c.strategy)))
	grant := Grant{Node: c.node, Limit: math.MaxUint64, Renew: math.MaxUint64}
	if g.lease != nil {
		h := &holder{g: g}
		h.mu.Lock() // until there is something to hold
		defer h.mu.Unlock()
		if grant, err = g.lease.Bind(h); err != nil {
			return nil, &ConfigError{Option: "WithLease", Err: err}
		}
	}
	// Slots before the clock's tick are not ours, even if it goes back before the
	// first call.
	first := max(g.tick(int64(now.Round(0).Sub(c.layout.Epoch))), grant.Floor)
	t := g.newTenure(grant)
	t.begin.Store(g.slotOf(first))
	t.free.Store(g.slotOf(first))
	g.tenure.Store(t)
	return g, nil
}

// Next issues one ID. It is [Generator.NextContext] without a context: a call
// that has to wait does so for as long as the strategy says.
func (g *Generator) Next() (snowflake.ID, error) {
	t := g.tenure.Load()
	slot, _, ok := g.take(t, g.now(), 1)
	if !ok {
		var err error
		if t, slot, _, err = g.acquire(&call{ctx: context.Background()}, 1); err != nil {
			return 0, err
		}
	}
	return t.ids.id(slot), nil
}

// NextContext issues one ID, or gives up when ctx ends. An ID is returned only
// with a nil error; otherwise the ID is 0 and the error one of
//
//   - [*LeadError]: the strategy rejected the call ([ErrExhausted], [ErrBehind]),
//   - [*ContextError]: ctx ended, possibly before the call,
//   - [*GrantError]: the generator's lease granted no time beyond the last ID,
//   - [*EndOfTimeError]: the time field is used up,
//   - [ErrClosed],
//   - [*ConfigError]: ctx is nil.
//
// A call that finds its slot free does not wait and does not allocate. The end
// of ctx is noticed at once in a long wait, and after about 2 ms at most in a
// short one.
//
// For a grant that a store does not give, a call waits as long as its strategy may
// wait for anything (so not at all if it is one of your own), or, if ctx has a
// deadline, until that.
func (g *Generator) NextContext(ctx context.Context) (snowflake.ID, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	t := g.tenure.Load()
	slot, _, ok := g.take(t, g.now(), 1)
	if !ok {
		var err error
		if t, slot, _, err = g.acquire(&call{ctx: ctx}, 1); err != nil {
			return 0, err
		}
	}
	return t.ids.id(slot), nil
}

// NextN fills ids, in ascending order, and returns how many it filled: all of
// them, or fewer and an error as in [Generator.NextContext]. The IDs that were
// filled are valid even so. It takes one reservation per tick, so that IDs of
// other callers come between those of different ticks only.
//
// An ID costs about 1 ns while the tick lasts; beyond that, the layout's ceiling
// holds. The time that a strategy allows for waiting is for the whole call, so a
// batch of more than a tick's IDs needs a strategy that waits long enough for all
// the ticks it takes: the default one, with the default layout, gets through 4
// million at best, and on a busy machine through fewer. A slice that is longer than
// [MaxBatch] is refused with a [*BatchSizeError]; an empty one asks for nothing, and
// nothing is done.
func (g *Generator) NextN(ids []snowflake.ID) (int, error) {
	return g.NextNContext(context.Background(), ids)
}

// NextNContext is [Generator.NextN], but gives up when ctx ends.
func (g *Generator) NextNContext(ctx context.Context, ids []snowflake.ID) (int, error) {
	if len(ids) > MaxBatch {
		return 0, &BatchSizeError{Size: len(ids), Limit: MaxBatch}
	}
	c := call{ctx: ctx}
	for filled := 0; filled < len(ids); {
		if err := ended(ctx); err != nil {
			return filled, err
		}
		t := g.tenure.Load()
		slot, end, ok := g.take(t, g.now(), uint64(len(ids)-filled))
		if !ok {
			var err error
			if t, slot, end, err = g.acquire(&c, uint64(len(ids)-filled)); err != nil {
				return filled, err
			}
		}
		for ; slot < end; slot++ {
			ids[filled] = t.ids.id(slot)
			filled++
		}
	}
	return len(ids), nil
}

// Layout returns the layout of the IDs, with which they can be decoded.
func (g *Generator) Layout() snowflake.Layout { return g.layout.Clone() }

// Node returns the node number of the IDs that are issued now. Under a lease it
// may change; each ID carries the one it was issued with.
func (g *Generator) Node() int64 { return g.tenure.Load().node }

// Close is [Generator.CloseContext] without a context of its own: the lease, if
// there is one, bounds how long its store is waited for.
func (g *Generator) Close() error { return g.CloseContext(context.Background()) }

// CloseContext ends the generator for good: later calls return [ErrClosed], those
// that are waiting return it within about 2 ms, and streams stop. Calls that run at
// the same time may still get their ID. Then it gives the lease back, if there is
// one, and returns the error of that: the node number then stays taken for a while
// longer, and nothing else is amiss. Closing again does nothing and returns nil. A ctx
// that is nil counts as [context.Background]: what must end can end.
func (g *Generator) CloseContext(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	end, first := g.seal()
	if !first || g.lease == nil {
		return nil
	}
	return g.lease.Release(ctx, end)
}
