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
