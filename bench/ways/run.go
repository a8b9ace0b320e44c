package ways

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
)

// clientCounts are those that are measured.
var clientCounts = []int{1, 2}

// subject is a way that is measured, and what was found.
type subject struct {
	way
	err     error // why there is nothing, or no more
	clients []client
	perID   map[int][]float64 // by the number of clients: microseconds that each waits for an ID, one per repeat
	rate    map[int][]float64 // IDs per second of all of them together
	ids     []int64           // all that were made
	again   int               // of these, how many are there twice
}

// open gets the way ready.
func (s *subject) open(ctx context.Context, r running) {
	s.perID, s.rate = map[int][]float64{}, map[int][]float64{}
	if s.err = r.missing(s.way); s.err != nil {
		return
	}
	if s.setUp != nil {
		if err := s.setUp(ctx, r); err != nil {
			s.err = fmt.Errorf("set it up: %w", err)
			return
		}
	}
	for n := range slices.Max(clientCounts) {
		c, err := s.way.open(ctx, r, n)
		if err != nil {
			s.err = fmt.Errorf("open client %d: %w", n+1, err)
			return
		}
		s.clients = append(s.clients, c)
	}
}

func (s *subject) close() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// measure gives some of the clients a slice, and keeps the times if they count.
func (s *subject) measure(ctx context.Context, clients int, box time.Duration, most int, counts bool) {
	if s.err != nil {
		return
	}
	runtime.GC() // what others have left is not this one's
	wait, rate := 0.0, 0.0
	for _, slice := range together(ctx, s.clients[:clients], box, most) {
		if slice.err != nil && ctx.Err() == nil {
			s.err = slice.err
		}
		s.ids = append(append(s.ids, slice.lead...), slice.ids...)
		wait += slice.perID() / float64(clients)
		rate += 1e6 / slice.perID()
	}
	if counts && s.err == nil && ctx.Err() == nil {
		s.perID[clients] = append(s.perID[clients], wait)
		s.rate[clients] = append(s.rate[clients], rate)
	}
}

// turn is a way with a number of clients.
type turn struct {
	*subject
	clients int
}

// measureAll measures the subjects until run.Budget is used up, counted from began.
func measureAll(ctx context.Context, run *measure.Run, began time.Time, subjects []*subject) {
	// At most so many whole ticks of tickflake: with a part of one, a slice would begin
	// with what its lead-in has left of a tick, and seem faster than the layout allows.
	const tick = 4096
	box, most, least := 100*time.Millisecond, 24*tick, 3
	if run.Quick {
		box, most, least = 15*time.Millisecond, 10*tick, 2
	}
	var turns []turn
	var names []string
	for _, s := range subjects {
		if s.err != nil {
			continue
		}
		for _, clients := range clientCounts {
			turns = append(turns, turn{s, clients})
			names = append(names, fmt.Sprintf("%s, clients: %d", s.name, clients))
		}
	}
	for _, t := range turns { // to warm up
		if ctx.Err() == nil {
			t.measure(ctx, t.clients, box/4, most, false)
		}
	}
	run.Rounds(ctx, began, least, names, func(i int) {
		turns[i].measure(ctx, turns[i].clients, box, most, true)
	})
	for _, s := range subjects {
		s.again = repeats(s.ids)
	}
}
