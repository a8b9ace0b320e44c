package migrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

func Example_reserve() {
	ctx := context.Background()
	layout := snowflake.Twitter()
	store, err := directory.Open("reserved-ids")
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range []int64{0, 1, 2, 3} { // those of the old processes
		if err := migrate.Reserve(ctx, store, layout, node, time.Now().AddDate(0, 6, 0)); err != nil {
			log.Fatal(err)
		}
	}

	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keeper.Node(), keeper.Close())
	// Output: 4 <nil>
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

// A store is for one layout: after the epoch has moved, it needs another namespace.
func TestStoreIsForOneLayout(t *testing.T) {
	store := leasetest.NewMemory()
	require.NoError(t, migrate.Reserve(t.Context(), store, snowflake.Twitter(), 3, time.Now()))
	moved := snowflake.Twitter()
	moved.Epoch = moved.Epoch.Add(-time.Hour)
	_, err := migrate.LeaseAfter(t.Context(), store, moved, 0)
	var mismatch *lease.LayoutMismatchError
	require.ErrorAs(t, err, &mismatch)
}

// An ID of the old generators reads from JSON as a string and as a number.
func TestOldJSON(t *testing.T) {
	for _, text := range []string{`"1541815603606036480"`, `1541815603606036480`, `4711`} {
		var id snowflake.ID
		require.NoError(t, json.Unmarshal([]byte(text), &id))
		assert.Equal(t, strings.Trim(text, `"`), id.String())
	}
}

// A clock that is set back between two starts brings no smaller IDs: each start waits, or
// says that it will not.
func TestStartAfterHoldsAtEachStart(t *testing.T) {
	inThe90s(t)
	layout := snowflake.Default()
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	var last snowflake.ID
	bubble(t, func(t *testing.T) {
		var err error
		last, err = layout.Max(time.Now().Add(3 * time.Second))
		require.NoError(t, err)
	})
	for range 2 {
		bubble(t, func(t *testing.T) {
			_, err := migrate.StartAfter(t.Context(), layout, last, 3*time.Second)
			require.ErrorContains(t, err, "3.001s ahead")
			began := time.Now()
			clock, err := migrate.StartAfter(t.Context(), layout, last, 3001*time.Millisecond)
			require.NoError(t, err)
			assert.Equal(t, 3001*time.Millisecond, time.Since(began))
			gen, err := generator.New(generator.WithLayout(layout), generator.WithClock(clock))
			require.NoError(t, err)
			id, err := gen.Next()
			require.NoError(t, err)
			assert.Greater(t, id, last)
		})
	}
	_, err := migrate.StartAfter(t.Context(), layout, -1, time.Second)
	assert.Error(t, err)
}

// The numbers of old processes are granted to new ones only when no others are left, and
// even then for no time in which an old process may issue IDs.
func TestReserve(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	until := now.AddDate(0, 6, 0)
	layout := snowflake.Default()
	layout.NodeBits, layout.SequenceBits = 3, 19
	for name, client := range map[string]func(*leasetest.Memory) lease.Store{
		"remote": func(m *leasetest.Memory) lease.Store { return m.Client() },
		"local":  func(m *leasetest.Memory) lease.Store { return m.Client().Locking() },
	} {
		store := leasetest.NewMemory()
		for node := range int64(4) {
			require.NoError(t, migrate.Reserve(t.Context(), client(store), layout, node, until))
		}
		claim := func(options ...lease.Option) *lease.Keeper {
			clock := clocktest.NewVirtual(now)
			keeper, err := lease.Claim(t.Context(), client(store),
				append(options, lease.WithLayout(layout), lease.WithClock(clock), lease.WithPolling())...)
			require.NoError(t, err, name)
			return keeper
		}
		for range 4 {
			assert.GreaterOrEqual(t, claim().Node(), int64(4), name)
		}
		for _, keeper := range []*lease.Keeper{claim(), claim(lease.WithNode(lease.NodeNumber(1)))} {
			assert.Less(t, keeper.Node(), int64(4), name)
			floor, _ := keeper.Granted()
			assert.False(t, floor.Before(until), name)
			gen, err := generator.New(generator.WithLease(keeper))
			require.NoError(t, err)
			_, err = gen.Next()
			assert.ErrorIs(t, err, generator.ErrBehind, name)
		}
	}
}

// A reserved number is not kept by WithNode: the claim says so, in place of every call after
// it, and leaves the reservation as it was. So it is when no other number is left.
func TestReservedNumberIsNotKept(t *testing.T) {
	layout := snowflake.Default()
	layout.NodeBits, layout.SequenceBits = 1, 21
	until := time.Now().AddDate(0, 6, 0).Truncate(time.Second)
	store := leasetest.NewMemory()
	for node := range int64(2) {
		require.NoError(t, migrate.Reserve(t.Context(), store.Client(), layout, node, until))
	}
	for name, options := range map[string][]lease.Option{
		"WithNode": {lease.WithNode(lease.NodeNumber(1))},
		"any":      nil,
	} {
		for range 2 { // the first claim does not move the date
			keeper, err := migrate.LeaseAfter(t.Context(), store.Client(), layout, 0, options...)
			require.Nil(t, keeper, name)
			var reserved *migrate.ReservedError
			require.ErrorAs(t, err, &reserved, name)
			require.ErrorContains(t, err, "cannot be kept by WithNode: choose one or the other")
			assert.True(t, until.Equal(reserved.From), "%s: %s", name, reserved.From)
			assert.Less(t, reserved.Ahead, time.Until(until)+time.Minute)
		}
	}
	holdings, err := lease.Inspect(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, holdings, 2)
	for _, h := range holdings {
		assert.Equal(t, lease.Released, h.State, "given back")
	}

	// What is left of a crash is no reservation.
	store = leasetest.NewMemory()
	pinned := lease.WithNode(lease.NodeNumber(1))
	crashed, err := migrate.LeaseAfter(t.Context(), store.Client(), layout, 0, pinned)
	require.NoError(t, err)
	_ = crashed.CloseContext(cancelled())
	keeper, err := migrate.LeaseAfter(t.Context(), store.Client(), layout, 0, pinned)
	require.NoError(t, err)
	require.NoError(t, keeper.Close())
}

// The wait for the clock ends with the context.
func TestLeaseAfterEndsWithItsContext(t *testing.T) {
	inThe90s(t)
	bubble(t, func(t *testing.T) {
		layout := snowflake.Default()
		layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		last, err := layout.Max(time.Now().Add(5 * time.Second))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = migrate.LeaseAfter(ctx, leasetest.NewMemory(), layout, last)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "5.001s ahead of the clock")
		assert.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
