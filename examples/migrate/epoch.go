// Package migrate is the code of the guides in docs/migrate. Its tests run it against the
// generators and databases that the guides start from.
package migrate

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

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
