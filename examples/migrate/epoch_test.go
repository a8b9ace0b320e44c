package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/snowflake"
)

// Whatever the old ID and the layout, all IDs from now on are larger, if the layout can
// do it at all; and the epoch moves no further than that takes.
func TestEpochAbove(t *testing.T) {
	larger := func(t require.TestingT, layout snowflake.Layout, last snowflake.ID, now time.Time) {
		moved, err := migrate.EpochAbove(layout, last, now)
		if err != nil {
			return
		}
		lowest, err := moved.Min(now)
		require.NoError(t, err)
		assert.Greater(t, lowest, last)
		if moved.Epoch.Before(layout.Epoch) {
			before, err := moved.Min(now.Add(-time.Minute - layout.Tick))
			assert.True(t, err != nil || before <= last, "moved further than it had to") // an error: before the epoch
		} else {
			assert.Equal(t, layout, moved)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom(snowflake.Presets()).Draw(t, "layout")
		last := snowflake.ID(rapid.Int64Range(0, 1<<63-1).Draw(t, "last") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		larger(t, layout, last, time.UnixMilli(rapid.Int64Range(1.7e12, 2.5e12).Draw(t, "now")).UTC())
	})
	_, err := migrate.EpochAbove(snowflake.Default(), -1, time.Now())
	assert.Error(t, err)
}
