package generator

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/strategies"
)

// Generator issues IDs. Make one with [New] and share it: its methods are safe
// for use by any number of goroutines, and one is enough for a process.
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
	first    uint64  // the first slot that is this generator's
	last     uint64  // the last slot of the time field
	sequence uint64  // mask of the sequence in a slot
	allowed  uint64  // ticks ahead of the clock that the strategy always borrows
	ids      assembly
	seqBits  uint8
	start    strategies.SequenceStart
	strategy strategies.Strategy
	layout   *Layout
	node     int64
	after    func(time.Duration) <-chan time.Time // how to wait for a clock that is not the machine's, or nil

	done chan struct{} // closed by Close, to wake those who wait
	turn chan struct{} // capacity 1: held by the one caller that sleeps for the next tick

	_ [cacheLine]byte
	// free is the first slot that is not issued: tick<<seqBits | sequence. It
	// only grows, and a slot belongs to whoever moved free past it. That one
	// fact is why no slot is issued twice and why IDs come in order. Sealed, it
	// is above every slot, and stays so.
	free atomic.Uint64
	_    [cacheLine - 8]byte

	counters counters
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Those with longer lines lose some speed, and nothing else.
const cacheLine = 64

// sealed is the value of free in a closed generator. Slots have at most 63 bits.
const sealed = math.MaxUint64

// MaxBatch is the longest slice that [Generator.NextN] takes: 16,777,216 IDs.
const MaxBatch = 1 << 24

// assembly puts IDs together from slots without branching on the field order.
type assembly struct {
	high, low uint64 // masks of the slot's bits above and below the node
	node      uint64 // the node number in its place
	shift     uint8  // how far the bits above are shifted: the node's width
}

func (a assembly) id(slot uint64) ID {
	return ID(slot&a.high<<(a.shift&63) | slot&a.low | a.node)
}

func newAssembly(l Layout, node int64) assembly {
	if l.Order == TimeSequenceNode {
		return assembly{high: math.MaxUint64, node: uint64(node), shift: uint8(l.NodeBits)}
	}
	sequence := uint64(1)<<l.SequenceBits - 1
	return assembly{high: ^sequence, low: sequence, node: uint64(node) << l.SequenceBits, shift: uint8(l.NodeBits)}
}

// New returns a generator. Without options it issues IDs of [DefaultLayout] on
// node 0, timed by a monoclock.Clock, and waits up to a second when it has to.
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
		node:     c.node,
		ids:      newAssembly(c.layout, c.node),
		done:     make(chan struct{}),
		turn:     make(chan struct{}, 1),
	}
	g.after = afterOf(c.clock)
	g.last = g.tick(int64(g.lifetime-1))<<g.seqBits | g.sequence
	g.allowed = g.tick(int64(strategies.BorrowLimit(c.strategy)))
	// Slots before the clock's tick are not ours, even if it goes back before the
	// first call.
	g.first = g.tick(int64(now.Round(0).Sub(c.layout.Epoch))) << g.seqBits
	g.free.Store(g.first)
	return g, nil
}

// Next issues one ID. It is [Generator.NextContext] without a context: a call
// that has to wait does so for as long as the strategy says.
func (g *Generator) Next() (ID, error) {
	slot, _, ok := g.take(g.now(), 1)
	if !ok {
		var err error
		if slot, _, err = g.acquire(&call{ctx: context.Background()}, 1); err != nil {
			return 0, err
		}
	}
	return g.ids.id(slot), nil
}

// NextContext issues one ID, or gives up when ctx ends. An ID is returned only
// with a nil error; otherwise the ID is 0 and the error one of
//
//   - [*LeadError]: the strategy rejected the call ([ErrExhausted], [ErrBehind]),
//   - [*ContextError]: ctx ended, possibly before the call,
//   - [*EndOfTimeError]: the time field is used up,
//   - [ErrClosed],
//   - [*ConfigError]: ctx is nil.
//
// A call that finds its slot free does not wait and does not allocate. The end
// of ctx is noticed at once in a long wait, and after about 2 ms at most in a
// short one.
func (g *Generator) NextContext(ctx context.Context) (ID, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	slot, _, ok := g.take(g.now(), 1)
	if !ok {
		var err error
		if slot, _, err = g.acquire(&call{ctx: ctx}, 1); err != nil {
			return 0, err
		}
	}
	return g.ids.id(slot), nil
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
// million at best, and on a busy machine through fewer. A slice that is empty or longer than [MaxBatch] is refused with
// a [*BatchSizeError].
func (g *Generator) NextN(ids []ID) (int, error) {
	return g.NextNContext(context.Background(), ids)
}

// NextNContext is [Generator.NextN], but gives up when ctx ends.
func (g *Generator) NextNContext(ctx context.Context, ids []ID) (int, error) {
	if len(ids) == 0 || len(ids) > MaxBatch {
		return 0, &BatchSizeError{Size: len(ids), Limit: MaxBatch}
	}
	c := call{ctx: ctx}
	for filled := 0; filled < len(ids); {
		if err := ended(ctx); err != nil {
			return filled, err
		}
		slot, end, ok := g.take(g.now(), uint64(len(ids)-filled))
		if !ok {
			var err error
			if slot, end, err = g.acquire(&c, uint64(len(ids)-filled)); err != nil {
				return filled, err
			}
		}
		for ; slot < end; slot++ {
			ids[filled] = g.ids.id(slot)
			filled++
		}
	}
	return len(ids), nil
}

// Layout returns the layout of the IDs, with which they can be decoded.
func (g *Generator) Layout() Layout { return g.layout.clone() }

// Node returns the node number.
func (g *Generator) Node() int64 { return g.node }

// Close ends the generator for good: later calls return [ErrClosed], those that
// are waiting return it within about 2 ms, and streams stop. Calls that run at the same
// time may still get their ID. Closing again does nothing. The error is always
// nil.
func (g *Generator) Close() error {
	if g.free.Swap(sealed) != sealed {
		close(g.done)
	}
	return nil
}
