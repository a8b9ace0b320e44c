package snowflake_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var (
	epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before the time of a bubble
	noon  = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	quiet = lease.WithLogger(slog.New(slog.DiscardHandler))
)

// virtual returns a clock on which a wait makes the time pass.
func virtual(at time.Time) *clocktest.Virtual {
	clock := clocktest.NewVirtual(at)
	clock.AutoAdvance(true)
	return clock
}

// leased returns a node with the number 1 under a lease.
func leased(t *testing.T, store stores.Store, options ...lease.Option) *snowflake.Node {
	t.Helper()
	options = append([]lease.Option{quiet, lease.WithLayout(snowflake.Layout()), lease.WithNode(lease.NodeNumber(1))}, options...)
	keeper, err := lease.Claim(t.Context(), store, options...)
	require.NoError(t, err)
	node, err := snowflake.NewLeasedNode(keeper)
	require.NoError(t, err)
	return node
}

// A process crashes with its clock at noon. The next one, with the same node number,
// starts with a clock that is behind.
func TestUniqueAcrossRestarts(t *testing.T) {
	store := storetest.NewMemory()
	seen := map[snowflake.ID]bool{}
	run := func(at time.Time) (last snowflake.ID) {
		clock := virtual(at)
		node := leased(t, store.Client(), lease.WithClock(clock), lease.WithPolling())
		for range 10_000 {
			id, err := node.GenerateContext(t.Context())
			require.NoError(t, err)
			require.False(t, seen[id])
			seen[id], last = true, id
		}
		assert.Less(t, clock.Passed(), time.Second, "has waited for the clock")
		return last
	}
	first := run(noon)
	for _, back := range []time.Duration{0, time.Millisecond, time.Second, 50 * time.Minute} {
		last := run(noon.Add(-back))
		assert.Greater(t, last, first)
		assert.Less(t, last.Time()-first.Time(), int64(5*time.Minute/time.Millisecond))
	}
}

// More than an hour is not borrowed. Waiting for it takes as long as the caller says.
func TestFarBehindTheLease(t *testing.T) {
	store := storetest.NewMemory()
	leased(t, store.Client(), lease.WithClock(virtual(noon)), lease.WithPolling())
	clock := virtual(noon.Add(-2 * time.Hour))
	node := leased(t, store.Client(), lease.WithClock(clock), lease.WithPolling())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := node.GenerateContext(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	id := node.Generate() // waits an hour
	assert.InDelta(t, noon.Add(30*time.Second).UnixMilli(), id.Time(), 1000)
	assert.InDelta(t, noon.Add(-time.Hour+30*time.Second).UnixMilli(), clock.Now().UnixMilli(), 1000)
}

func TestGenerateWaitsForTheStore(t *testing.T) {
	layout(t, epoch, 10, 12)
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		node := leased(t, store)
		last := node.Generate()
		store.Fail(storetest.Unavailable, 1_000_000)
		time.Sleep(time.Hour)
		ids := make(chan snowflake.ID, 1)
		go func() { ids <- node.Generate() }()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ids, "issued without a grant")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := node.GenerateContext(ctx)
		require.ErrorIs(t, err, generator.ErrNotGranted)
		store.Heal()
		assert.Greater(t, <-ids, last)
		require.NoError(t, node.Close())
	})
}

func TestGeneratePanicsWhereWaitingIsInVain(t *testing.T) {
	layout(t, epoch, 10, 12)
	failure := func(node *snowflake.Node) (err error) {
		defer func() { err, _ = recover().(error) }()
		node.Generate()
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		node := leased(t, store)
		other := leased(t, store.Client()) // takes the number over
		time.Sleep(time.Hour)
		other.Generate()
		err := failure(node)
		require.ErrorIs(t, err, lease.ErrLost)
		require.ErrorIs(t, err, lease.ErrHeld)

		require.NoError(t, other.Close())
		require.ErrorIs(t, failure(other), generator.ErrClosed)
		_ = node.Close()
	})
	layout(t, epoch, 1, 21) // 41 bits of time
	end := snowflake.Layout().End()
	clock := virtual(end.Add(-time.Minute))
	node := leased(t, storetest.NewMemory(), lease.WithClock(clock), lease.WithPolling())
	require.NoError(t, failure(node))
	clock.Advance(time.Minute)
	require.ErrorIs(t, failure(node), lease.ErrEndOfTime)
	assert.Contains(t, failure(node).Error(), "snowflake: no ID can be issued any more")
}

func TestLeaseOfAnotherLayout(t *testing.T) {
	keeper, err := lease.Claim(t.Context(), storetest.NewMemory(), quiet)
	require.NoError(t, err)
	defer func() { require.NoError(t, keeper.Close()) }()
	for _, l := range []*lease.Keeper{keeper, nil} {
		_, err = snowflake.NewLeasedNode(l)
		var config *stores.OptionError
		require.ErrorAs(t, err, &config)
	}
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store := storetest.NewMemory() // in production, directory.Open, etcd.Open, …
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(snowflake.Layout()), quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := snowflake.NewLeasedNode(keeper)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close() // releases the node number

	first, second := node.Generate(), node.Generate()
	fmt.Println(first < second, time.Since(time.UnixMilli(first.Time())) < time.Minute)

	old, err := snowflake.ParseBase58([]byte("3Amry1HHf7U"))
	fmt.Println(old, err)
	// Output:
	// true true
	// 1116766490855473152 <nil>
}
