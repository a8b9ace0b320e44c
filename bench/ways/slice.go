package ways

import (
	"context"
	"sync"
	"time"
)

// slice is what one client did in its turn.
type slice struct {
	ids  []int64
	took time.Duration
	err  error
}

// perID is how long an ID took, in microseconds.
func (s slice) perID() float64 { return float64(s.took.Nanoseconds()) / 1e3 / float64(len(s.ids)) }

// take makes IDs for a while, and at most so many.
func (c client) take(ctx context.Context, box time.Duration, most int) slice {
	s := slice{ids: make([]int64, 0, most)}
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

// together has clients take IDs at the same time.
func together(ctx context.Context, clients []client, box time.Duration, most int) []slice {
	slices := make([]slice, len(clients))
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, c := range clients {
		group.Go(func() {
			<-start
			slices[i] = c.take(ctx, box, most)
		})
	}
	close(start)
	group.Wait()
	return slices
}
