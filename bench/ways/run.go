package ways

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// clientCounts are the numbers of clients that are measured.
var clientCounts = []int{1, 2}

// subject is a way, and what was measured of it.
type subject struct {
	way
	err     error // why there is nothing, or no more
	clients []client
	perID   map[int][]float64 // by number of clients: microseconds that each waits for an ID, one per round
	rate    map[int][]float64 // IDs per second of all of them together
	rush    []float64         // IDs per second of a crowd, one per round
	ids     []int64           // of all turns and clients
	again   int               // IDs that are there a second time
	// alone and rushed say in which rounds a hypervisor took processor time, from one client
	// and from a crowd.
	alone, rushed []bool
}

// open gets the way ready.
func (s *subject) open(ctx context.Context, r []*servers.Server) {
	s.perID, s.rate = map[int][]float64{}, map[int][]float64{}
	var on []*servers.Server
	for _, p := range s.needs {
		on = append(on, r[p])
		s.err = errors.Join(s.err, r[p].Err)
	}
	if s.err != nil {
		return
	}
	if s.setUp != nil {
		if err := s.setUp(ctx, on); err != nil {
			s.err = fmt.Errorf("set it up: %w", err)
			return
		}
	}
	for n := range slices.Max(clientCounts) {
		c, err := s.way.open(ctx, on, n)
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
	runtime.GC() // the garbage of other ways
	disturbed := measure.WatchStolen()
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
		if clients == 1 {
			s.alone = append(s.alone, disturbed())
		}
	}
}

// measureAll measures the subjects until run.Budget is used up, counted from began.
func measureAll(ctx context.Context, run *measure.Run, began time.Time, subjects []*subject) {
	// A slice is at most so many whole ticks of tickflake: with a part of a tick it would
	// use what its lead-in has left of one, and seem faster than the layout allows.
	const tick = 4096
	box, most, least := 60*time.Millisecond, 24*tick, 3
	if run.Quick {
		box, most, least = 15*time.Millisecond, 10*tick, 2
	}
	var names []string
	var turns []func()
	for _, s := range subjects {
		if s.err != nil {
			continue
		}
		for _, clients := range clientCounts {
			if ctx.Err() == nil {
				s.measure(ctx, clients, box/4, most, false) // to warm up
			}
			names = append(names, clientTurn(s.name, clients))
			turns = append(turns, func() { s.measure(ctx, clients, box, most, true) })
		}
		if s.crowd {
			names = append(names, crowdTurn(s.name))
			turns = append(turns, func() { s.measureCrowd(ctx, box) })
		}
	}
	run.Rounds(ctx, began, least, names, func(i int) { turns[i]() }, neighbours(names)...)
	for _, s := range subjects {
		s.again = repeats(s.ids)
	}
}

func clientTurn(way string, clients int) string { return fmt.Sprintf("%s, clients: %d", way, clients) }
func crowdTurn(way string) string               { return fmt.Sprintf("%s, callers: %d", way, callers) }

// neighbours are the indices of the turns that the targets compare, if there are both.
func neighbours(turns []string) (pairs [][]int) {
	for server, base := range map[string]string{"PostgreSQL": postgresSequence, "ZooKeeper": sequentialNodes} {
		ours, theirs := slices.Index(turns, crowdTurn(sequenceName(server, ordered))), slices.Index(turns, clientTurn(base, 1))
		if ours >= 0 && theirs >= 0 {
			pairs = append(pairs, []int{ours, theirs})
		}
	}
	// The order of a run follows from its seed.
	slices.SortFunc(pairs, func(a, b []int) int { return a[0] - b[0] })
	return pairs
}

// repeats sorts the IDs, and returns how many are there a second time, or more often.
func repeats(ids []int64) int {
	slices.Sort(ids)
	n := 0
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			n++
		}
	}
	return n
}

// slice is what one client did in its turn.
type slice struct {
	lead []int64 // IDs of the lead-in
	ids  []int64
	took time.Duration
	err  error
}

// perID is the time of an ID, in microseconds.
func (s slice) perID() float64 { return float64(s.took.Nanoseconds()) / 1e3 / float64(len(s.ids)) }

// leadIn is the most IDs that a client makes, unmeasured, before a slice. They use up the
// rest of a tick or of a segment.
const leadIn = 10_000

// run makes IDs for a while, and at most so many, at once after a lead-in: after a pause,
// a new tick would be there for nothing.
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
	// A fast way makes several IDs between two looks at the clock, which cost as much.
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
