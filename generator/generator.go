package generator

import (
	"context"
	"errors"
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// Generator issues IDs. Make one with [Open], which claims a node number in a store, or with
// [New] for a node number or a lease of your own:
//
//	gen, err := generator.Open(ctx, "ids") // a directory, or the URL of a server
//	defer gen.Close()
//	id, err := gen.Next()
//
// One is enough for a process: its methods are safe for use by any number of goroutines. The
// zero Generator is not usable.
//
// The methods that issue IDs share one core. Choose by the caller's need:
//
//   - [Generator.Next] for one ID. Most callers want this.
//   - [Generator.NextContext] for one ID in a request that may be canceled.
//   - [Generator.NextAfter] for an ID that must follow one of another machine.
//   - [Generator.NextN] for many at once, as in a bulk import.
//   - [Generator.Stream] for a goroutine that issues IDs all the time and must
//     not share a cache line with others.
//
// If a call of Next, NextContext, NextAfter or NextN has returned before another begins, the
// other returns larger IDs, whatever the clock does. Streams guarantee less: see [Stream].
type Generator struct {
	// Set by New and never written again.
	clock    monoclock.Interface
	nanos    nanoClock   // reads clock
	epoch    int64       // Unix nanoseconds
	moved    *seam.Moved // if not nil, the clock reads time.Since(began) + origin + moved.By(), in nanoseconds since the epoch
	began    time.Time
	origin   int64
	tickNs   int64
	lifetime uint64 // nanoseconds from the epoch to issuingEnd
	end      uint64 // the slot after the last that is issued
	sequence uint64 // mask of the sequence in a slot
	allowed  uint64 // ticks ahead of the clock that the strategy always borrows
	seqBits  uint8
	below    uint64 // the first slot of a tick is drawn from so many
	strategy strategies.Strategy
	layout   *snowflake.Layout
	ids      assembly
	// base is origin + moved.By() as it was when the gate was opened last: with an older one, the clock seems behind and the
	// fast path fails. It changes under the queue's mu, only when moved has, so its line is hardly ever written.
	base     word.Int64
	window   *window.Ticks                        // hands out the slots
	lease    *lease.Keeper                        // or nil
	store    stores.Store                         // that Open opened, or nil
	after    func(time.Duration) <-chan time.Time // waits by a clock that is not the machine's, or nil
	elapsed  func() time.Duration                 // measures a wait that was cut short
	patience time.Duration                        // for a grant, of a call without a deadline

	queue queue
	turn  chan struct{} // capacity 1: held by the one caller that sleeps for the next tick

	ending drive.Ending // of the lease and the store
	leave  func()       // gives up the share in the clock of the number

	_        [cacheLine]byte
	counters counters
}

// cacheLine is the distance at which two words do not disturb each other on
// most processors. Processors with longer lines only lose some speed.
const cacheLine = 64

// assembly puts IDs together from slots without branching on the field order: an ID is a sum
// of products. Its bits are those of a shift and a mask, which take longer.
type assembly struct {
	perSlot uint64 // from one slot of a tick to the next
	perTick uint64 // what a tick adds to the products of its slots
	perNode uint64
}

func (a *assembly) id(slot, tick uint64, node int64) snowflake.ID {
	return snowflake.ID(slot*a.perSlot + tick*a.perTick + uint64(node)*a.perNode)
}

func newAssembly(l snowflake.Layout) assembly {
	if l.Order == snowflake.TimeSequenceNode {
		return assembly{perSlot: 1 << l.NodeBits, perNode: 1}
	}
	// The time is above the node: a tick counts 1<<SequenceBits in a slot.
	return assembly{perSlot: 1, perTick: 1<<(l.NodeBits+l.SequenceBits) - 1<<l.SequenceBits, perNode: 1 << l.SequenceBits}
}

// New returns a generator. It needs a node number: from a keeper by [WithLease], or a fixed one by [WithNode],
// whose doc says when that is safe. [Open] does all of it in one call. Make one generator and keep it: a new
// one for each ID costs microseconds instead of nanoseconds.
//
// The defaults are the layout [snowflake.Default], a [monoclock.Clock], and a wait of up to a second when the
// next slot lies ahead of the clock.
//
// New fails with a [*stores.OptionError] that names the option and the numbers when an option is out of range
// or nil, when there is neither WithLease nor WithNode, when the layout is not valid, and when the clock's time
// lies before the layout's epoch or after its end. Whatever the layout, no generator issues IDs after April 11,
// 2262, where the nanoseconds since 1970 no longer fit in 64 bits.
func New(opts ...Option) (*Generator, error) {
	c, err := configure(opts)
	switch {
	case err != nil:
		return nil, err
	case len(c.leaseOptions) > 0:
		return nil, &stores.OptionError{Option: "WithLeaseOptions", Err: errors.New("it is for Open, which claims: give the options to lease.Claim")}
	case !c.leased && !c.pinned && c.window == nil:
		return nil, &stores.OptionError{Option: "New", Err: errNoNode}
	case c.ownLog:
		return nil, &stores.OptionError{Option: "WithLogger", Err: errors.New("it is for Open, and nothing is logged without a lease: give it to lease.Claim")}
	case c.within.Given:
		return nil, &stores.OptionError{Option: "WithWallWithin", Err: errors.New("it is for Open, which waits: call monoclock.AwaitWall before New")}
	}
	return newGenerator(c)
}

func newGenerator(c config) (*Generator, error) {
	if err := c.validate(context.Background()); err != nil {
		return nil, err
	}
	leave := func() {}
	switch shares := c.window == nil && c.lease == nil; {
	case shares && !c.ownClock && !base.InBubble():
		leave = c.share() // before the check, which is that of the clock that it will use
	case shares:
		c.window = c.fixed()
	}
	if c.clock == nil {
		c.clock = monoclock.New()
	}
	now, err := c.check()
	if err != nil {
		leave()
		return nil, err
	}
	g := &Generator{
		clock:    c.clock,
		nanos:    nanosOf(c.clock),
		epoch:    c.layout.Epoch.UnixNano(),
		tickNs:   int64(c.layout.Tick),
		lifetime: uint64(issuingEnd(c.layout).Sub(c.layout.Epoch)),
		seqBits:  uint8(c.layout.SequenceBits),
		sequence: 1<<c.layout.SequenceBits - 1,
		below:    c.below,
		strategy: c.strategy,
		layout:   &c.layout,
		ids:      newAssembly(c.layout),
		window:   c.window,
		lease:    c.lease,
		turn:     make(chan struct{}, 1),
		leave:    leave,
	}
	if began, base, moved := seam.Steady(c.clock); moved != nil {
		g.began, g.origin, g.moved = began, base-g.epoch, moved
	}
	word.Name(&g.base, "base")
	word.Name(&g.counters.maxLead, "maxLead")
	word.Name(&g.counters.borrowedEnd, "borrowedEnd")
	g.after, g.elapsed, _ = base.Waiting(c.clock)
	g.queue.ring.prev, g.queue.ring.next = &g.queue.ring, &g.queue.ring
	g.open()
	g.end = issuingTicks(c.layout) << g.seqBits
	exhausted, behind := seam.LimitsOf(c.strategy)
	g.allowed = g.tick(int64(min(exhausted.Always, behind.Always)))
	g.patience = max(exhausted.Wait, behind.Wait)
	if c.lease != nil {
		ticks, err := window.OfKeeper(c.lease)
		if err != nil {
			return nil, &stores.OptionError{Option: "WithLease", Err: err}
		}
		g.window = ticks
	}
	// Slots before the clock's tick are not ours, even if the clock goes back before
	// the first call, and those up to the ID of WithFloor are another system's.
	g.window.Skip(max(g.tick(int64(now.Round(0).Sub(c.layout.Epoch))), c.begin))
	return g, nil
}

// Next issues one ID. It is [Generator.NextContext] without a context: a call that has to wait waits for as
// long as the strategy allows.
func (g *Generator) Next() (snowflake.ID, error) {
	id, now, ok := g.quick()
	if !ok {
		return g.issue(context.Background(), now)
	}
	return id, nil
}

// NextContext issues one ID, or gives up when ctx ends. An ID is returned only with a nil error; otherwise the
// ID is 0 and the error one of
//
//   - [*LeadError]: the strategy rejected the call ([ErrExhausted], [ErrBehind]),
//   - an error that wraps that of ctx and its cause: ctx ended, possibly before the call,
//   - [*GrantError]: the generator's lease granted no time beyond the last ID,
//   - [lease.ErrEndOfTime]: the time field is used up,
//   - [ErrClosed].
//
// A call that finds its slot free does not wait and does not allocate. The end of ctx ends a long wait at once,
// and a short wait after about 2 ms at most.
//
// While the lease has no grant, a call waits for one: until its deadline or, without a deadline, for as long as
// its strategy waits for slots (0 for a strategy of your own). If the store refuses, it fails at once. If other
// calls use up a new grant, the wait begins anew. It is counted apart from waits for slots.
//
// Calls that wait are served in the order in which they began to wait. A waiting call is overtaken only by
// calls that were running when it began to wait, each once, and by calls that borrow by a strategy of your own.
// No call is rejected while the waiting calls want fewer IDs than the layout has within the strategy's wait.
func (g *Generator) NextContext(ctx context.Context) (snowflake.ID, error) {
	if err := checkContext(ctx); err != nil {
		return 0, err
	}
	id, now, ok := g.quick()
	if !ok {
		return g.issue(ctx, now)
	}
	return id, nil
}

// quick issues one ID in the common case: additions are open in the clock's tick. Else, and when its
// slot is dropped, it fails, and returns its reading of the clock for issue.
//
// The clock is read before the look at what is open, and no call comes after it, so that hardly any
// caller is held up between the look and the addition. Load the span before the clock, and compute the ID
// before the addition: either would otherwise sit on the critical path. For the same reason the reading is
// compared with the tick's beginning, a multiple of tickNs, and not divided.
func (g *Generator) quick() (id snowflake.ID, now int64, ok bool) {
	span := g.window.Span()
	if g.moved != nil {
		now = int64(time.Since(g.began)) + g.base.Load()
	} else {
		now = g.now()
	}
	end, open := span.Adding()
	tick := end >> (g.seqBits & 63)
	id = g.ids.id(0, tick, span.Node())
	if uint64(now)-tick*uint64(g.tickNs) < uint64(g.tickNs) && open && uint64(now) < g.queue.gate.Load() {
		if slot, ok := span.Add(end); ok && span.Original() {
			return id + snowflake.ID(slot*g.ids.perSlot), now, true
		}
	}
	return 0, now, false
}

// issue issues one ID in all cases. now is a reading of the clock.
func (g *Generator) issue(ctx context.Context, now int64) (snowflake.ID, error) {
	span, slot, _, err := g.reserve(&call{ctx: ctx}, now, 1)
	if err != nil {
		return 0, err
	}
	return g.id(slot, span), nil
}

// id is the ID of a slot of span.
func (g *Generator) id(slot uint64, span *window.Span) snowflake.ID {
	return g.ids.id(slot, slot>>(g.seqBits&63), span.Node())
}

// NextN fills ids, in ascending order, and returns how many it filled: all of them, or fewer and an error as in
// [Generator.NextContext]. The filled IDs are valid in both cases. IDs of other callers come only between those
// of different ticks. To give a context, call [Generator.NextNContext]; NextN of a sequence always takes one.
//
// An ID costs about 1 ns while the tick lasts; beyond that, the layout's ceiling holds. The wait that a
// strategy allows is for the whole call, so a batch of more than a tick's IDs needs a strategy that waits long
// enough for all its ticks: with the default strategy and layout, a call fills 4 million IDs at best, and fewer
// on a busy machine. With an empty slice, it does nothing.
func (g *Generator) NextN(ids []snowflake.ID) (int, error) {
	return g.NextNContext(context.Background(), ids)
}

// NextNContext is [Generator.NextN], but gives up when ctx ends.
func (g *Generator) NextNContext(ctx context.Context, ids []snowflake.ID) (int, error) {
	stride := snowflake.ID(g.ids.perSlot)
	filled, err := g.batch(ctx, uint64(len(ids)), func(filled uint64, id snowflake.ID, n uint64) {
		batch := ids[filled:][:n]
		for i := range batch {
			batch[i] = id
			id += stride
		}
	})
	return int(filled), err
}

// NextRuns is [Generator.NextNContext], but appends n IDs to runs: each run has those of one node and one tick. With an
// n below 1, it does nothing.
func (g *Generator) NextRuns(ctx context.Context, n int64, runs []snowflake.Run) ([]snowflake.Run, error) {
	given := len(runs)
	filled, err := g.batch(ctx, uint64(max(n, 0)), func(filled uint64, id snowflake.ID, n uint64) {
		if filled == 0 {
			runs = runs[:given]
		}
		runs = append(runs, snowflake.Run{First: id, Count: int64(n), Stride: int64(g.ids.perSlot)})
	})
	if filled == 0 {
		runs = runs[:given]
	}
	return runs, err
}

// batch reserves n slots tick by tick, gives the first ID and the number of those of each tick to add, and returns how
// many they are. When it finds that this memory is a copy it begins anew, and filled is 0 again.
func (g *Generator) batch(ctx context.Context, n uint64, add func(filled uint64, id snowflake.ID, n uint64)) (filled uint64, err error) {
	c := call{ctx: ctx}
	var before *window.Span // of the IDs that are filled
	for filled < n {
		var span *window.Span
		var slot, end uint64
		if err = checkContext(ctx); err == nil {
			span, slot, end, err = g.reserve(&c, g.now(), n-filled)
		}
		if before != nil && !before.Original() {
			filled = 0 // the original returns them
		}
		if err != nil {
			return filled, err
		}
		before = span
		add(filled, g.id(slot, span), end-slot)
		filled += end - slot
	}
	return filled, nil
}

// Layout returns the layout of the IDs, which decodes them.
func (g *Generator) Layout() snowflake.Layout { return g.layout.Clone() }

// Clock returns the clock of the IDs' time.
func (g *Generator) Clock() monoclock.Interface { return g.clock }

// Node returns the node number of the IDs that are issued now. Under a lease it
// may change; each ID has the number that it was issued with.
func (g *Generator) Node() int64 { return g.window.Front().Node }

// Keeper returns the keeper of the generator's lease, for its [lease.Keeper.Stats]. ok is false
// if the generator has no lease. Closing the generator closes the keeper.
func (g *Generator) Keeper() (keeper *lease.Keeper, ok bool) { return g.lease, g.lease != nil }

// Store returns the store that [Open] opened, for the sequences of the same process, or nil if Open did not
// make the generator. Closing the generator closes the store, so close the sequences first.
func (g *Generator) Store() stores.Store { return g.store }

// Restored tells the generator that the process's memory was restored or copied: from a VM's snapshot, by
// SnapStart or by CRIU. Call it before the next ID; if the lease has found a VMClock ([lease.WithVMClock]), no
// call is needed. It gives up the rest of the grant, which the original may use, and claims another node
// number. Meanwhile calls for IDs wait as they do without a grant.
//
// It returns as soon as ctx ends, and after four timeouts of the lease at most. The error is that of the claim,
// and wraps that of ctx if ctx has ended; the generator then issues no IDs until its keeper has claimed.
// Without a lease the error is [ErrNoLease]: the two copies have the same node number.
func (g *Generator) Restored(ctx context.Context) error {
	if g.lease == nil {
		return ErrNoLease
	}
	return g.lease.Restored(ctx)
}

// Close is [Generator.CloseContext] without a context. It takes at most two timeouts of the lease, if there is
// one, and 1 second for the store.
func (g *Generator) Close() error { return g.CloseContext(context.Background()) }

// CloseContext ends the generator for good. Later calls return [ErrClosed], and calls that are waiting return
// it within about 2 ms; a call that runs at the same time may still get its ID. Streams stop too; without a
// lease, when their tick ends. CloseContext then releases the lease, if there is one, closes the store if [Open]
// opened it, and returns their errors: after an error, the node number may stay held until it expires. It
// returns as soon as ctx ends, and the rest goes on in the background. Further calls wait for the same, and
// return the same error.
func (g *Generator) CloseContext(ctx context.Context) error {
	if _, first := g.window.Seal(); first {
		g.leave()
	}
	switch {
	case g.lease == nil:
		return nil
	case g.store == nil:
		return g.lease.CloseContext(ctx)
	}
	return g.ending.Wait(ctx, lease.ErrNotReleased, closing(g.lease, g.store))
}

// closing returns what releases the number, and then closes the store.
func closing(keeper *lease.Keeper, store stores.Store) func(context.Context) error {
	return func(ctx context.Context) error { return join(keeper.CloseContext(ctx), store.Close()) }
}
