package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// StartAfter returns a clock that is past last, the largest old ID under layout. IDs by
// this clock are larger, since the clock never goes back. If the clock is behind last,
// StartAfter waits for up to 10 seconds, or until ctx ends.
func StartAfter(ctx context.Context, layout snowflake.Layout, last snowflake.ID) (*monoclock.Clock, error) {
	newest, err := layout.Decode(last)
	if err != nil {
		return nil, fmt.Errorf("largest old ID: %w", err)
	}
	clock := monoclock.New()
	ahead := newest.Time.Add(layout.Tick).Sub(clock.Now())
	if ahead > 10*time.Second {
		return nil, fmt.Errorf("largest old ID is %s ahead of the clock (limit 10s): set the clock right, or move the epoch", ahead)
	}
	if ahead > 0 {
		select {
		case <-time.After(ahead):
		case <-ctx.Done():
			return nil, fmt.Errorf("largest old ID is %s ahead of the clock: %w", ahead, context.Cause(ctx))
		}
	}
	return clock, nil
}

// EpochAbove returns layout with an epoch that is moved back, if needed, so that every ID
// from now on is larger than last, whatever the layout that last was issued under. Call it
// once, not at each start, and keep the layout.
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
