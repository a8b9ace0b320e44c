package scorecard

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// outage is F15: one process asks for ten IDs a second. Its store is away for two
// minutes, then loses the answer to every other write for two, and then has all writes
// arrive two minutes late, the latest first. In between it is well for a minute.
func outage(ctx context.Context, r *record) {
	const every, bad = 100 * time.Millisecond, 2 * time.Minute
	clock, store := clocktest.NewVirtual(noon), leasetest.NewMemory()
	var until time.Duration // true time when the store is well again, even if a call waits for that
	fault := func(leasetest.Op) leasetest.Fault { return leasetest.None }
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if clock.Passed() >= until {
			return leasetest.None
		}
		return fault(op)
	}
	p, err := r.start(ctx, clock, store)
	if err != nil {
		r.failed(err)
		return
	}
	swaps := 0
	for _, next := range []func(leasetest.Op) leasetest.Fault{
		func(leasetest.Op) leasetest.Fault { return leasetest.Unavailable },
		func(op leasetest.Op) leasetest.Fault {
			if op.Kind == leasetest.OpSwap {
				swaps++
			}
			return []leasetest.Fault{leasetest.None, leasetest.ReplyLost}[swaps%2]
		},
		func(leasetest.Op) leasetest.Fault { return leasetest.Delayed },
	} {
		r.calls(p, every, time.Minute)
		fault, until = next, clock.Passed()+bad
		r.calls(p, every, bad)
		for i := len(store.Late()) - 1; i >= 0; i-- {
			store.Deliver(i)
		}
		// It asks the store again within a second.
		r.calls(p, every, 1100*time.Millisecond)
		if !r.call(p) {
			r.violate(generatortest.NoRecovery, "the store had been well for more than a second, and a call failed")
		}
	}
	if err := p.gen.Close(); err != nil {
		r.failed(err)
	}
}
