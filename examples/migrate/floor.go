package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// StartAfter returns a clock that is past last, the largest of the old IDs, as layout
// reads it. IDs that are issued by this clock are larger, since it never goes back. If the
// clock is behind, StartAfter waits for it, up to patience and until ctx ends.
func StartAfter(ctx context.Context, layout snowflake.Layout, last snowflake.ID, patience time.Duration) (*monoclock.Clock, error) {
	newest, err := layout.Decode(last)
	if err != nil {
		return nil, fmt.Errorf("largest old ID: %w", err)
	}
	clock := monoclock.New()
	ahead := newest.Time.Add(layout.Tick).Sub(clock.Now())
	if ahead > patience {
		return nil, fmt.Errorf("largest old ID is %s ahead of the clock (limit %s): set the clock right, or move the epoch", ahead, patience)
	}
	if ahead > 0 {
		select {
		case <-time.After(ahead):
		case <-ctx.Done():
			return nil, fmt.Errorf("largest old ID is %s ahead of the clock, waiting for it: %w", ahead, ctx.Err())
		}
	}
	return clock, nil
}

// LeaseAfter claims a lease for IDs that are larger than last, the largest of the old
// ones. It fails with a *ReservedError if the node number is one that was left to the old
// generators.
func LeaseAfter(ctx context.Context, store lease.Store, layout snowflake.Layout, last snowflake.ID, options ...lease.Option) (*lease.Keeper, error) {
	clock, err := StartAfter(ctx, layout, last, 10*time.Second)
	if err != nil {
		return nil, err
	}
	options = append([]lease.Option{lease.WithLayout(layout), lease.WithClock(clock)}, options...)
	keeper, err := lease.Claim(ctx, store, options...)
	if err != nil {
		return nil, err
	}
	if err := notReserved(keeper, clock); err != nil {
		return nil, err
	}
	return keeper, nil
}

// EpochAbove moves the epoch of layout back, if need be, so that every ID from now on is
// larger than last, in whatever layout that was issued. Keep the layout that it returns:
// call it once, not at each start.
func EpochAbove(layout snowflake.Layout, last snowflake.ID, now time.Time) (snowflake.Layout, error) {
	newest, err := layout.Decode(last)
	if err != nil {
		return snowflake.Layout{}, fmt.Errorf("largest old ID: %w", err)
	}
	if ahead := newest.Time.Add(layout.Tick).Sub(now); ahead > 0 {
		layout.Epoch = layout.Epoch.Add(-ahead.Truncate(time.Minute) - time.Minute)
		layout.Name = ""
	}
	return layout, layout.ValidateAt(now)
}
