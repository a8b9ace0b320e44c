package migrate

import (
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// SonyflakeLayout is the layout of a sony/sonyflake of version 1 whose settings have this
// StartTime, or the zero one.
func SonyflakeLayout(start time.Time) snowflake.Layout {
	layout := snowflake.SonyflakeV1()
	if !start.IsZero() {
		layout.Name = ""
		layout.Epoch = start.UTC().Truncate(layout.Tick) // it counts whole ticks since 1970
	}
	return layout
}

// MachineIDSource has a lease take the number that the MachineID function of the old
// settings gives: a uint16 in version 1 of sonyflake, an int in version 2.
func MachineIDSource[N uint16 | int](machineID func() (N, error)) lease.NodeSource {
	return func(snowflake.Layout) (int64, error) {
		n, err := machineID()
		return int64(n), err
	}
}
