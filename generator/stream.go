package generator

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/snowflake"
)

// Stream issues IDs to one goroutine from small blocks of slots that it takes, so that goroutines on different
// cores do not contend for one word with every ID. Get one from [Generator.Stream]; the zero Stream is not
// usable. A Stream must not be used by two goroutines at the same time, and needs no closing.
//
// What it keeps: IDs are unique among all that the generator issues, and those of one Stream ascend. The clock
// is read for every ID, so its time is as exact as that of [Generator.Next]: a block ends with its tick. Order
// holds from tick to tick, across all streams and callers: an ID returned before another call begins is not of
// a later tick than the ID of that call.
//
// What it gives up: within one tick, IDs of different streams, or of a stream and Next, come in any order,
// whichever call was first.
//
// What it costs: the unused slots of a block that ends are dropped. A block is twice as long as the number of
// IDs issued from the block before, from 1 slot to a sixteenth of the tick's slots and at most 1024. So a
// stream that rarely issues an ID drops at most one slot with it, and no stream drops more slots than the IDs
// that it issues, plus one.
type Stream struct {
	g    *Generator
	span *window.Span // of the block
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

// largestBlock is the length of a block from which on streams on two cores are as fast as those
// of two generators. Each reservation takes the word out of the caches of the other cores, which
// read it again with their next ID: with blocks of 256, an ID took up to 1.3 times as long.
const largestBlock = 1024

// Stream returns a new stream of IDs for one goroutine.
func (g *Generator) Stream() *Stream {
	return &Stream{g: g, largest: min(largestBlock, max(1, (g.sequence+1)/16))}
}

// Next issues one ID, with the errors of [Generator.Next].
func (s *Stream) Next() (snowflake.ID, error) { return s.issue(context.Background()) }

// NextContext issues one ID, or gives up when ctx ends, with the errors of
// [Generator.NextContext].
func (s *Stream) NextContext(ctx context.Context) (snowflake.ID, error) {
	if err := checkContext(ctx); err != nil {
		return 0, err
	}
	return s.issue(ctx)
}

// NextAfter issues one ID that is larger than seen, with the errors of [Generator.NextAfter].
// The rest of the block is dropped.
func (s *Stream) NextAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	id, err := s.g.NextAfter(ctx, seen)
	if err == nil {
		s.end = s.next // its slots lie below id
	}
	return id, err
}

func (s *Stream) issue(ctx context.Context) (snowflake.ID, error) {
	for {
		var now int64
		if s.g.moved != nil { // as in Generator.quick: the call of an interface would cost 1 ns of 25
			now = int64(time.Since(s.g.began)) + s.g.base.Load()
		} else {
			now = s.g.now()
		}
		if s.next == s.end || uint64(now)-s.from >= s.lifetime || s.span.Passed(s.tickEnd) {
			if err := s.reserve(ctx); err != nil {
				return 0, err
			}
		}
		slot := s.next
		s.next++
		if s.span.Original() {
			return s.g.id(slot, s.span), nil
		}
		s.span.Abandon() // and the block has ended
	}
}

// reserve drops the rest of the block and takes a new one.
func (s *Stream) reserve(ctx context.Context) error {
	g := s.g
	span := g.window.Span()
	slot, end, ok := g.take(span, g.now(), g.queue.gate.Load(), min(max(1, 2*(s.next-s.first)), s.largest)) // issue asks for each slot whether this memory is a copy
	if !ok {
		// One slot only: a strategy that decides about each slot by itself must be
		// asked for each.
		var err error
		if span, slot, end, err = g.acquire(&call{ctx: ctx}, 1); err != nil {
			return err
		}
	}
	s.span, s.first, s.next, s.end = span, slot, slot, end
	s.tickEnd = (slot | g.sequence) + 1
	// As in take, the clock may be before the block's tick by as much as the strategy
	// always borrows.
	tick := slot >> g.seqBits
	earliest := tick - min(tick, g.allowed)
	s.from = earliest * uint64(g.tickNs)
	s.lifetime = min((tick+1-earliest)*uint64(g.tickNs), g.due(g.base.Load())-s.from) // a tick may be longer than the time between two looks
	return nil
}
