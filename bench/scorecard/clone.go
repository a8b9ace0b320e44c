package scorecard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// clone is F19: a process, and a copy of its memory beside it, each of which asks for
// two IDs every 10 ms. Both go on from the same grant.
func clone(ctx context.Context, r *record) {
	const window = 9 * time.Second
	clock, cells := clocktest.NewVirtual(noon), leasetest.NewMemory()
	original, err := r.start(ctx, clock, cells.Client(), lease.WithWindow(window))
	if err != nil {
		r.failed(err)
		return
	}
	copied, err := r.start(ctx, clock, &replay{Memory: cells.Client(), claim: cells.Peek(original.keeper.Node())}, lease.WithWindow(window))
	if err != nil {
		r.failed(err)
		return
	}
	for clock.Wall().Before(noon.Add(3 * window)) {
		for _, p := range []*process{original, copied} {
			r.call(p)
			r.call(p)
		}
		clock.Advance(10 * time.Millisecond)
	}
	for _, p := range []*process{original, copied} {
		if err := p.gen.Close(); err != nil {
			r.failed(err)
		}
	}
}

// replay is a store that shows a process another's claim as its own, as if it were a
// copy of that one. From then on it is the store itself.
type replay struct {
	*leasetest.Memory
	claim lease.Cell
	done  atomic.Bool
}

func (s *replay) List(ctx context.Context) ([]lease.Cell, error) {
	if !s.done.Load() {
		return nil, nil
	}
	return s.Memory.List(ctx)
}

func (s *replay) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if s.done.CompareAndSwap(false, true) {
		return s.claim, nil
	}
	return s.Memory.Swap(ctx, old, value)
}
