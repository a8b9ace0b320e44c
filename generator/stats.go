package generator

import (
	"errors"
	_ "sync/atomic" // without it, its methods are not inlined through package word
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/strategies"
)

// Stats is what a [Generator] counted since it was made. Issued IDs are not
// counted: a shared counter would cost as much as issuing the ID.
type Stats struct {
	// Waits counts the waits for slots, of which a call has at most one, a batch one per tick and a stream one
	// per block. Waited is the time of these waits, added up.
	Waits  uint64
	Waited time.Duration
	// BorrowedTicks is the number of ticks from which slots were taken before the clock reached them. When
	// several callers begin to borrow from different ticks in the same moment, not all may be counted.
	BorrowedTicks uint64
	// Rejections is the number of calls that the strategy rejected.
	Rejections uint64
	// Lead is how far the last ID issued is ahead of the clock now, or 0. Before the first ID with the present
	// node number, it is the lead of the next ID, on which the strategy has to decide: above 0 after a restart
	// with a grant that begins ahead of the clock.
	Lead time.Duration
	// MaxLead is the largest lead that a call has met, whether it borrowed or not.
	MaxLead time.Duration
	// Remaining is the time from the clock to the limit of the lease's grant or, without a lease, to the end of
	// the layout's time field. It is below zero past that end.
	Remaining time.Duration
	// Drift is the wall clock's time minus the generator's, if the clock reports
	// it, as [monoclock.Clock] does.
	Drift time.Duration
	// WallError is how far the wall clock may be off now, as the kernel says, if the clock reports it, as
	// [monoclock.Clock] does. It says nothing about a clock that was made before. Below zero, it is not known.
	WallError time.Duration
}

// Stats returns the counts so far. They are read one after the other, not at one
// instant. It costs a microsecond, and does not slow Next down.
func (g *Generator) Stats() Stats {
	s := Stats{
		Waits:         g.counters.waits.Load(),
		Waited:        time.Duration(g.counters.waited.Load()),
		BorrowedTicks: g.counters.borrowedTicks.Load(),
		Rejections:    g.counters.rejections.Load(),
		MaxLead:       time.Duration(g.counters.maxLead.Load()),
	}
	now, front := g.now(), g.window.Front()
	if !front.Sealed {
		last := front.Last
		if front.Fresh {
			last = front.Slot >> g.seqBits
		}
		s.Lead = max(0, g.leadOf(last, now))
	}
	s.Remaining = g.leadOf(front.End()>>g.seqBits, now)
	if d, ok := g.clock.(interface{ Drift() time.Duration }); ok {
		s.Drift = d.Drift()
	}
	s.WallError = base.WallError(g.clock)
	return s
}

// Ready returns nil if a call of [Generator.NextContext] that can wait for up to wait, such as the timeout of a
// request, would be served now; else it returns the error of such a call. It takes no ID, counts nothing, never
// waits and asks no store, so a probe for readiness can call it at any rate.
//
// While its store is away, a generator is ready until its grant ends. After it took over the node number of a
// crashed process, it is ready once its strategy bridges the lead. A tick that is used up counts as ready,
// since the next one is about to begin. For time to spare, compare [Stats].Remaining. [Generator.Err] says
// whether a restart is needed.
func (g *Generator) Ready(wait time.Duration) error {
	front, now := g.window.Front(), g.now()
	if err := g.over(front, now); err != nil {
		return err
	}
	tick, next := g.tick(now), front.Slot>>g.seqBits
	if max(tick, next) >= front.Limit>>g.seqBits {
		return new(call).notGranted(g, front, nil)
	}
	s := strategies.Situation{Cause: g.cause(front, now), Lead: g.leadOf(next, now)}
	if s.Lead <= 0 || s.Cause == strategies.Exhausted {
		return nil
	}
	switch d := g.strategy.Decide(s); {
	case d.Action == strategies.ActionBorrow, d.Action == strategies.ActionWait && waitOf(d, s.Lead) <= wait:
		return nil
	case d.Action == strategies.ActionWait:
		return &LeadError{Cause: s.Cause, Lead: s.Lead, Limit: s.Lead - waitOf(d, s.Lead) + wait}
	default:
		return &LeadError{Cause: s.Cause, Lead: s.Lead, Limit: d.Limit}
	}
}

// Err returns nil unless only a restart helps, for a probe of liveness: the generator was closed, or its grant
// is used up and its lease is lost, moved to another store, or at the end of the layout's time. Then it returns
// the error of every call. It never waits, and asks no store.
func (g *Generator) Err() error {
	err := g.Ready(0)
	for _, end := range []error{ErrClosed, lease.ErrLost, lease.ErrMoved, lease.ErrEndOfTime} {
		if errors.Is(err, end) {
			return err
		}
	}
	return nil
}

// noteBorrow notes that a slot of tick was taken by a reading of now. It writes
// only new values: a borrow is on the fast path, and another write to a shared
// word for every ID would double its cost. Before it writes, it reads the clock
// again, because now is old if the caller was suspended.
func (g *Generator) noteBorrow(tick uint64, now int64) {
	if tick < g.counters.borrowedEnd.Load() && int64(g.leadOf(tick, now)) <= g.counters.maxLead.Load() {
		return
	}
	if lead := g.leadOf(tick, g.now()); lead > 0 {
		g.counters.borrow(tick)
		g.counters.lead(lead)
	}
}

// counters are written off the fast path only.
type counters struct {
	waits, rejections, borrowedTicks word.Uint64
	waited                           word.Int64
	maxLead                          word.Int64  // only grows
	borrowedEnd                      word.Uint64 // the tick after the latest that was borrowed, or 0; only grows
}

// borrow notes that a slot of tick was issued ahead of the clock.
func (c *counters) borrow(tick uint64) {
	if end := c.borrowedEnd.Load(); tick >= end && c.borrowedEnd.CompareAndSwap(end, tick+1) {
		c.borrowedTicks.Add(1)
	}
}

// lead notes the lead that a call has met.
func (c *counters) lead(lead time.Duration) {
	for seen := c.maxLead.Load(); int64(lead) > seen; seen = c.maxLead.Load() {
		if c.maxLead.CompareAndSwap(seen, int64(lead)) {
			return
		}
	}
}
