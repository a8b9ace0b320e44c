package generator

import (
	"context"
	"iter"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/snowflake"
)

// Stream issues IDs to one goroutine from small blocks that it reserves, so that
// goroutines on different cores do not contend for one word with every ID. Get
// one from [Generator.Stream]; the zero Stream is not usable. A Stream must not be
// used by two goroutines at the same time, and needs no closing.
//
// What it keeps: IDs are unique among all that the generator issues, and those
// of one Stream ascend. The clock is read for every ID, so its time is as true as
// that of [Generator.Next]: a block dies with its tick. Order holds from tick to
// tick, across all streams and callers: an ID returned before another call begins
// is not of a later tick than the other's ID.
//
// What it gives up: within one tick, IDs of different streams, or of a stream and
// Next, come in no particular order, whichever call was first.
//
// What it costs: the rest of a block that dies is dropped. A block is twice what
// the block before it came to, from 1 slot to a sixteenth of the tick's and at
// most 256. So a stream that issues one ID now and then drops at most one slot
// with it, and no stream drops more than it issues, and one.
type Stream struct {
	g    *Generator
	span *window.Span // that the block was taken in
	// The block: slots from first up to end, of which those from next on are not
	// issued. It lives while the clock reads from nanoseconds or up to lifetime
	// later, and no caller was given a slot at tickEnd or after.
	first, next, end uint64
	from, lifetime   uint64
	tickEnd          uint64

	largest uint64 // the longest block

	// Streams of several goroutines are often made one after the other, and
	// would share a cache line.
	_ [cacheLine]byte
}

// Stream returns a new stream of IDs for one goroutine.
func (g *Generator) Stream() *Stream {
	return &Stream{g: g, largest: min(256, max(1, (g.sequence+1)/16))}
}

// Next issues one ID, with the errors of [Generator.Next].
func (s *Stream) Next() (snowflake.ID, error) { return s.issue(context.Background()) }

// NextContext issues one ID, or gives up when ctx ends, with the errors of
// [Generator.NextContext].
func (s *Stream) NextContext(ctx context.Context) (snowflake.ID, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	return s.issue(ctx)
}

func (s *Stream) issue(ctx context.Context) (snowflake.ID, error) {
	if s.next == s.end || uint64(s.g.now())-s.from >= s.lifetime || s.span.Passed(s.tickEnd) {
		if err := s.reserve(ctx); err != nil {
			return 0, err
		}
	}
	slot := s.next
	s.next++
	return s.g.ids.id(slot, s.span.Node()), nil
}

// reserve replaces what is left of the block by a new one.
func (s *Stream) reserve(ctx context.Context) error {
	g := s.g
	span := g.window.Span()
	slot, end, ok := g.take(span, g.now(), min(max(1, 2*(s.next-s.first)), s.largest))
	if !ok {
		// A slot that a strategy grants for once may be the only one: one that
		// borrows in its own way must be asked for each.
		var err error
		if span, slot, end, err = g.acquire(&call{ctx: ctx}, 1); err != nil {
			return err
		}
	}
	s.span, s.first, s.next, s.end = span, slot, slot, end
	s.tickEnd = (slot | g.sequence) + 1
	// The clock's part is what take checks: the block may be issued from as far
	// before its tick as the strategy always borrows.
	tick := slot >> g.seqBits
	earliest := tick - min(tick, g.allowed)
	s.from = earliest * uint64(g.tickNs)
	s.lifetime = (tick + 1 - earliest) * uint64(g.tickNs)
	return nil
}

// All returns IDs one after the other until ctx ends or a call fails, for use in
// a range loop. The error is yielded once, with the ID 0, as the last element;
// it is the one of [Generator.NextContext]. Each loop runs on a [Stream] of its
// own, so its IDs ascend, and their order among those of others is a Stream's.
//
//	for id, err := range g.All(ctx) {
//		if err != nil {
//			return err
//		}
//		…
//	}
func (g *Generator) All(ctx context.Context) iter.Seq2[snowflake.ID, error] {
	return func(yield func(snowflake.ID, error) bool) {
		s := g.Stream()
		for {
			id, err := s.NextContext(ctx)
			if !yield(id, err) || err != nil {
				return
			}
		}
	}
}
