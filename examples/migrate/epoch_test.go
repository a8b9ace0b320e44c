package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/snowflake"
)

// All IDs from now on are larger than the old one, and the epoch moves no further than that takes.
func TestEpochAbove(t *testing.T) {
	now, layout := exampletest.Day, snowflake.Default()
	for _, ahead := range []int{-1, 0, 1} { // days that the old ID is ahead
		last, err := layout.Max(now.AddDate(0, 0, ahead))
		require.NoError(t, err)
		moved, err := migrate.EpochAbove(layout, last, now)
		require.NoError(t, err)
		lowest, err := moved.Min(now)
		require.NoError(t, err)
		assert.Greater(t, lowest, last)
		assert.Equal(t, ahead < 0, moved.Epoch.Equal(layout.Epoch))
		before, err := moved.Min(now.Add(-time.Minute - layout.Tick)) // the epoch moves by whole minutes
		require.NoError(t, err)
		assert.True(t, ahead < 0 || before <= last, "moved further than it had to")
	}
	_, err := migrate.EpochAbove(layout, -1, now)
	assert.Error(t, err)
}
