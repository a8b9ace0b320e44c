package migrate

import (
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// SonyflakeLayout returns the layout of sony/sonyflake version 1 with the StartTime of its
// settings, which may be zero.
func SonyflakeLayout(start time.Time) snowflake.Layout {
	layout := snowflake.SonyflakeV1()
	if !start.IsZero() {
		layout.Name = ""
		layout.Epoch = start.UTC().Truncate(layout.Tick) // it counts whole ticks since 1970
	}
	return layout
}
