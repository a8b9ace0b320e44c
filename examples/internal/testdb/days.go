package testdb

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// Day is the day that tests of time ranges ask for.
var Day = time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)

// Around returns the IDs of the default layout that lie closest to the bounds of the day, just
// inside and just outside, for the smallest and the largest node number.
func Around(t testing.TB, day time.Time) (inside, outside []snowflake.ID) {
	t.Helper()
	next := day.AddDate(0, 0, 1)
	for _, edge := range []struct {
		instant time.Time
		ids     *[]snowflake.ID
	}{
		{day.Add(-time.Millisecond), &outside},
		{day, &inside},
		{next.Add(-time.Millisecond), &inside},
		{next, &outside},
	} {
		for _, slot := range [][2]int64{{0, 0}, {0, 4095}, {1023, 0}, {1023, 4095}} {
			id, err := snowflake.Default().Compose(edge.instant, slot[0], slot[1])
			require.NoError(t, err)
			*edge.ids = append(*edge.ids, id)
		}
	}
	return inside, outside
}

// PerHour is how many IDs Month returns for an hour.
const PerHour = 20

// Month returns PerHour IDs for each hour of 30 days, one of which is Day. With that many rows
// the planner of a database prefers an index to a full scan.
func Month(t testing.TB) []snowflake.ID {
	t.Helper()
	var ids []snowflake.ID
	for hour := range 30 * 24 {
		for i := range PerHour {
			instant := Day.AddDate(0, 0, -15).Add(time.Duration(hour)*time.Hour + time.Duration(i+1)*time.Minute)
			id, err := snowflake.Default().Compose(instant, int64(i%7), 0)
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	return ids
}
