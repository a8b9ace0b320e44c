package lease_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// keep polls k, as its goroutine would, for d, and calls each between.
func keep(t *testing.T, k *lease.Keeper, clock *clocktest.Virtual, d time.Duration, each func()) {
	t.Helper()
	for end := clock.Elapsed() + d; clock.Elapsed() < end; {
		next := first(k.Poll(t.Context()))
		require.GreaterOrEqual(t, next, time.Millisecond, "it would run hot")
		each()
		clock.Advance(next)
	}
}

// An extension is one write, and there is one in a third of a window.
func TestWritesPerWindow(t *testing.T) {
	for name, fault := range map[string]func(*clocktest.Virtual){
		"steady":      func(*clocktest.Virtual) {},
		"stands":      func(c *clocktest.Virtual) { c.Freeze(time.Hour) },
		"half":        func(c *clocktest.Virtual) { c.Slew(0.5, time.Hour) },
		"steps back":  func(c *clocktest.Virtual) { c.Step(-time.Hour) },
		"steps ahead": func(c *clocktest.Virtual) { c.Step(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			store := counted(storetest.NewMemory())
			k := claim(t, store, clock)
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(2*time.Hour)))
			require.NoError(t, err)
			fault(clock)
			const windows = 20
			keep(t, k, clock, windows*lease.DefaultWindow, func() {
				_, err := gen.Next()
				require.NoError(t, err)
			})
			require.LessOrEqual(t, counters[store][storetest.OpSwap], 3*windows+2, "%v", counters[store])
			require.GreaterOrEqual(t, counters[store][storetest.OpSwap], 3*windows-2, "as signs of life, whatever the clock does")
			require.Equal(t, 1, counters[store][storetest.OpList])
			require.Equal(t, 1, counters[store][storetest.OpRead], "of the layout")
		})
	}
}

// Callers who fail for lack of a grant do not make the keeper ask more often.
func TestNeedLeavesTheStoreAlone(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := counted(storetest.NewMemory())
	k := claim(t, store, clock)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
	clock.Advance(lease.DefaultWindow)
	for range 5 {
		before := trips(store)
		for range 10_000 {
			_, err := gen.Next()
			require.ErrorIs(t, err, generator.ErrNotGranted)
			select {
			case <-k.Window().More(): // the goroutine would look
				k.Poll(t.Context())
			default:
			}
			clock.Advance(100 * time.Microsecond)
		}
		require.LessOrEqual(t, trips(store)-before, 10, "in a second")
	}
	store.Before = nil
	clock.Advance(grant.Urgent)
	k.Poll(t.Context())
	_, err = gen.Next()
	require.NoError(t, err)
}

// A keeper that has lost its number for good asks for nothing any more.
func TestPinnedIsLostForGood(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := counted(memory.Client())
	k := claim(t, store, clock, lease.WithNode(lease.NodeNumber(5)))
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(5)), lease.WithOwner("the successor"))
	_, limit := k.Granted()
	clock.Advance(15 * time.Second)
	k.Poll(t.Context())
	before := trips(store)
	keep(t, k, clock, time.Minute, func() {
		_, err := gen.Next()
		if clock.Wall().Before(limit) {
			require.NoError(t, err, "what is left of the grant is its own")
			return
		}
		require.ErrorIs(t, err, lease.ErrHeld)
		require.ErrorContains(t, err, "the successor")
		require.ErrorIs(t, err, lease.ErrLost)
	})
	require.Equal(t, before, trips(store))
}

// The log says who took a number, or that nobody has it now.
func TestLossIsLogged(t *testing.T) {
	for name, test := range map[string]struct {
		release bool
		want    string
	}{
		"taken":          {false, `another process took it" node=5 "ours until"=2029-06-01T12:00:30.000Z holder="the successor"`},
		"and given back": {true, `another process took and released it, or an operator released it" node=5 "ours until"=2029-06-01T12:00:30.000Z` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			memory := storetest.NewMemory()
			var log bytes.Buffer
			k := claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(5)), lease.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			successor := claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(5)), lease.WithOwner("the successor"))
			if test.release {
				require.NoError(t, successor.Close())
			}
			clock.Advance(15 * time.Second)
			k.Poll(t.Context())
			require.Contains(t, log.String(), test.want)
		})
	}
}

// A number that was lost is used up before the next one is gone over to, if that
// begins ahead of the clock; IDs keep their order.
func TestGoesOverWithoutAGap(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	// All numbers but one are far ahead.
	clock.Step(3 * time.Second)
	for node := range int64(3) {
		require.NoError(t, must(lease.Claim(t.Context(), memory.Client(), quiet(clock, small(2), lease.WithNode(lease.NodeNumber(node)))...)).Close())
	}
	clock.Step(-3 * time.Second)
	k := claim(t, memory.Client(), clock, small(2), lease.WithWindow(6*time.Second))
	require.EqualValues(t, 3, k.Node())
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Millisecond))) // the change costs the rest of the tick
	require.NoError(t, err)
	claim(t, memory.Client(), clock, small(2), lease.WithNode(lease.NodeNumber(3)))
	var last snowflake.ID
	nodes := map[int64]bool{}
	keep(t, k, clock, 10*time.Second, func() {
		id, err := gen.Next()
		require.NoError(t, err)
		require.Greater(t, id, last)
		last = id
		nodes[must(gen.Layout().Decode(id)).Node] = true
	})
	require.Len(t, nodes, 2)
	require.False(t, nodes[k.Node()] && k.Node() == 3)
}

// The same for a claim, which is then known by a listing.
func TestClaimLandsLate(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := memory.Client()
	k := claim(t, store, clock, lease.WithWindow(3*time.Second))
	first := k.Node()
	claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(first)))
	clock.Advance(2 * time.Second)
	swaps := 0
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			swaps++
			if swaps == 2 { // the claim that follows the loss
				return storetest.Delayed
			}
		}
		return storetest.None
	}
	k.Poll(t.Context())
	require.Len(t, memory.Late(), 1)
	late := nodeOf(memory.Late()[0].Key)
	require.True(t, memory.Deliver(0))
	clock.Advance(time.Second)
	k.Poll(t.Context())
	require.Equal(t, late, k.Node())
	require.Equal(t, 2, swaps, "it is not claimed a second time")
}

// The keepers of processes that start at once do not extend at once, and never later than after a
// third of a window.
func TestFirstExtensionsAreSpread(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	const third = lease.DefaultWindow / 3
	tenths := map[time.Duration]int{}
	for range 500 {
		due := first(claim(t, memory.Client(), clock).Poll(t.Context()))
		require.LessOrEqual(t, due, third)
		tenths[min(due*10/third, 9)]++
	}
	for tenth := range time.Duration(10) {
		require.Greater(t, tenths[tenth], 20, "tenth %d: %v", tenth, tenths)
	}
}
