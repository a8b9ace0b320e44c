package migrate_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

func Example_reserve() {
	ctx := context.Background()
	layout := snowflake.Twitter()
	store, err := stores.Open(ctx, "reserved-ids")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	until := time.Now().AddDate(0, 6, 0)
	if err := lease.Reserve(ctx, store, 0, 3, until, lease.WithLayout(layout)); err != nil {
		log.Fatal(err)
	}

	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keeper.Node() > 3, keeper.Close())
	// Output: true <nil>
}

func Example_movedEpoch() {
	old := snowflake.Twitter()
	last := snowflake.ID(2_000_000_000_000_000_000)                                // issued by a clock that was ahead
	moved, err := migrate.EpochAbove(old, last, time.UnixMilli(1_765_000_000_000)) // now
	if err != nil {
		log.Fatal(err)
	}

	decode := func(id snowflake.ID) (snowflake.Decoded, error) {
		if id <= last {
			return old.Decode(id)
		}
		return moved.Decode(id)
	}

	next, err := moved.Compose(time.UnixMilli(1_765_000_000_000), 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next > last)
	for _, id := range []snowflake.ID{last, next} {
		parts, err := decode(id)
		fmt.Println(parts.Time, err)
	}
	// Output:
	// true
	// 2025-12-14 00:28:52.86 +0000 UTC <nil>
	// 2025-12-06 05:46:40 +0000 UTC <nil>
}

// Whatever the old ID and the layout, all IDs from now on are larger, if the layout can
// do it at all; and the epoch moves no further than that takes.
func TestEpochAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom(snowflake.Presets()).Draw(t, "layout")
		last := snowflake.ID(rapid.Int64Range(0, 1<<63-1).Draw(t, "last") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		now := time.UnixMilli(rapid.Int64Range(1.7e12, 2.5e12).Draw(t, "now")).UTC()
		moved, err := migrate.EpochAbove(layout, last, now)
		if err != nil {
			return
		}
		lowest, err := moved.Min(now)
		require.NoError(t, err)
		assert.Greater(t, lowest, last)
		back := layout.Epoch.Sub(moved.Epoch)
		assert.GreaterOrEqual(t, back, time.Duration(0))
		if back > 0 {
			before, err := moved.Min(now.Add(-time.Minute - layout.Tick))
			assert.True(t, err != nil || before <= last, "moved further than it had to") // an error: before the epoch
		}
	})
	// The very last ID of the present tick is one to get past.
	now := time.UnixMilli(1_765_000_000_000)
	old, err := snowflake.SonyflakeV1().Max(now)
	require.NoError(t, err)
	moved, err := migrate.EpochAbove(snowflake.SonyflakeV1(), old, now)
	require.NoError(t, err)
	lowest, err := moved.Min(now)
	require.NoError(t, err)
	assert.Greater(t, lowest, old)

	// It is possible for the layouts and IDs that the guides speak of.
	for _, layout := range []snowflake.Layout{snowflake.Default(), snowflake.Twitter(), snowflake.Sonyflake(), snowflake.SonyflakeV1()} {
		_, err := migrate.EpochAbove(layout, old, time.Now())
		assert.NoError(t, err, layout.Name)
	}
	_, err = migrate.EpochAbove(snowflake.JavaScript(), old, time.Now())
	assert.Error(t, err)
	_, err = migrate.EpochAbove(snowflake.Default(), -1, time.Now())
	assert.Error(t, err)
}
