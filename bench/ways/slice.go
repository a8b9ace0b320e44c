package ways

import (
	"context"
	"sync"
	"time"
)

// slice is what one client did in its turn.
type slice struct {
	lead []int64 // IDs of the lead-in
	ids  []int64
	took time.Duration
	err  error
}

// perID is how long an ID took, in microseconds.
func (s slice) perID() float64 { return float64(s.took.Nanoseconds()) / 1e3 / float64(len(s.ids)) }

// leadIn is how many IDs a client makes at most, unmeasured, before a slice: what it has
// left itself, as the rest of a tick or of a segment, does not count either.
const leadIn = 10_000

// run makes IDs for a while, and at most so many, after a lead-in. The one follows the
// other at once: what is there anew after a pause, such as a tick, is not for nothing.
func (c client) run(ctx context.Context, box time.Duration, lead, ids []int64) slice {
	first := c.take(ctx, box/8, lead)
	if first.err != nil {
		return slice{lead: first.ids, err: first.err}
	}
	s := c.take(ctx, box, ids)
	s.lead = first.ids
	return s
}

// take makes IDs for a while, and at most as many as ids has room for.
func (c client) take(ctx context.Context, box time.Duration, ids []int64) slice {
	s, most := slice{ids: ids}, cap(ids)
	began := time.Now()
	// A way that is fast makes several between looks at the clock, which cost as much.
	for batch := 1; len(s.ids) < most && s.took < box && ctx.Err() == nil; {
		before := s.took
		for range min(batch, most-len(s.ids)) {
			id, err := c.next(ctx)
			if err != nil {
				s.err = err
				return s
			}
			s.ids = append(s.ids, id)
		}
		s.took = time.Since(began)
		if s.took-before < box/64 {
			batch *= 2
		}
	}
	return s
}

// together has clients run at the same time.
func together(ctx context.Context, clients []client, box time.Duration, most int) []slice {
	slices := make([]slice, len(clients))
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, c := range clients {
		group.Go(func() {
			lead, ids := make([]int64, 0, leadIn), make([]int64, 0, most)
			<-start
			slices[i] = c.run(ctx, box, lead, ids)
		})
	}
	close(start)
	group.Wait()
	return slices
}
