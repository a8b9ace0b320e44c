package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// small is a layout of a few node numbers.
func small(nodeBits int) lease.Option {
	l := snowflake.Default()
	l.NodeBits, l.Name, l.Parts = nodeBits, "", nil
	return lease.WithLayout(l)
}

// quiet are the options of a keeper that a test polls.
func quiet(clock monoclock.Interface, options ...lease.Option) []lease.Option {
	return append([]lease.Option{lease.WithClock(clock), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)
}

// counted has m count its operations.
func counted(m *storetest.Memory) *storetest.Memory {
	counts := map[storetest.OpKind]int{}
	m.After = func(_ context.Context, op storetest.Op) { counts[op.Kind]++ }
	counters[m] = counts
	return m
}

var counters = map[*storetest.Memory]map[storetest.OpKind]int{}

func trips(m *storetest.Memory) (n int) {
	for _, k := range counters[m] {
		n += k
	}
	return n
}

func TestClaimRoundTrips(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := counted(memory)
	k, err := lease.Claim(t.Context(), store, quiet(clock)...)
	require.NoError(t, err)
	require.LessOrEqual(t, trips(store), 4, "on an empty store, the layout included")
	for node := int64(0); node < 1000; node++ { // as if others had claimed them
		_, err := memory.Client().Swap(t.Context(), cell.NodeKey(node), 0, memory.Peek(cell.NodeKey(k.Node())).Value)
		if node != k.Node() {
			require.NoError(t, err)
		}
	}
	for range 23 {
		store = counted(memory.Client())
		_, err := lease.Claim(t.Context(), store, quiet(clock)...)
		require.NoError(t, err)
		require.LessOrEqual(t, trips(store), 5, "with 1,000 of 1,024 numbers taken")
	}
}

func TestNoFreeNodeError(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	for range 4 {
		_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(2), lease.WithWindow(time.Minute))...)
		require.NoError(t, err)
		clock.Advance(time.Second)
	}
	_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(2))...)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, err, &full)
	require.Equal(t, lease.NoFreeNodeError{Held: 4, Nodes: 4, Soonest: noon.Add(2 * time.Minute)}, *full)

	// With a deadline it waits; meanwhile nobody extends, and so all are dead.
	clock.AutoAdvance(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	begin := clock.Elapsed()
	k, err := lease.Claim(ctx, memory.Client(), quiet(clock, small(2))...)
	require.NoError(t, err)
	require.InDelta(t, 2*time.Minute, clock.Elapsed()-begin, float64(grant.Urgent), "a window after the end of the grant, or two after the last sign of life")
	require.NoError(t, k.Close())

	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, small(3))...)
	var other *lease.LayoutMismatchError
	require.ErrorAs(t, err, &other)
}

func TestClaimGivesUpWithItsContext(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(0))...)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	store := memory.Client()
	store.After = func(_ context.Context, op storetest.Op) {
		if op.Kind == storetest.OpList {
			cancel()
		}
	}
	_, err = lease.Claim(ctx, store, quiet(clock, small(0))...)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, err, &full)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, full.Held)

	store.After = nil
	store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Unavailable }
	_, err = lease.Claim(ctx, store, quiet(clock, small(0))...)
	require.ErrorIs(t, err, lease.ErrStore)
	require.ErrorIs(t, err, context.Canceled)
}

// A cause does not hide that it was the context.
func TestClaimGivesUpWithItsContextsCause(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(0))...)
	require.NoError(t, err)
	cause := errors.New("the deploy was stopped")
	for name, fault := range map[string]storetest.Fault{"full": storetest.None, "away": storetest.Unavailable} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		store := memory.Client()
		store.Before = func(context.Context, storetest.Op) storetest.Fault { return fault }
		store.After = func(_ context.Context, op storetest.Op) {
			if op.Kind == storetest.OpList {
				cancel(cause)
			}
		}
		if fault == storetest.Unavailable {
			cancel(cause)
		}
		_, err = lease.Claim(ctx, store, quiet(clock, small(0))...)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, cause, name)
		stop()
	}
}

// Two who start in the same moment with the number that both must have: the one who
// comes second is told so, and not that the fleet is full.
func TestPinnedClaimsCollide(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithNode(lease.NodeNumber(7)), lease.WithOwner("before both"))...)
	require.NoError(t, err)
	store := memory.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			store.Before = nil
			_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithNode(lease.NodeNumber(7)))...)
			assert.NoError(t, err)
		}
		return storetest.None
	}
	_, err = lease.Claim(t.Context(), store, quiet(clock, lease.WithNode(lease.NodeNumber(7)))...)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.ErrorIs(t, err, stores.ErrConflict)
	require.NotErrorIs(t, err, lease.ErrStore)
}

// Others who are faster count as those who hold.
func TestCollisionsAreCounted(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := memory.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(1), lease.WithNode(lease.NodeNumber(nodeOf(op.Key))))...)
			assert.NoError(t, err)
		}
		return storetest.None
	}
	_, err := lease.Claim(t.Context(), store, quiet(clock, small(1))...)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, err, &full)
	require.EqualValues(t, 2, full.Held)
}

func TestClaimAtTheEndsOfTime(t *testing.T) {
	layout := snowflake.Default()
	layout.NodeBits, layout.Parts = 1, nil
	end := layout.End()
	clock := clocktest.NewVirtual(end.Add(-time.Minute))
	memory := storetest.NewMemory()
	options := quiet(clock, lease.WithLayout(layout), lease.WithWindow(time.Hour))
	k, err := lease.Claim(t.Context(), memory, options...)
	require.NoError(t, err)
	_, limit := k.Granted()
	require.Equal(t, end, limit, "no more than there is")
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	_, err = gen.Next()
	require.NoError(t, err)
	for range 10 {
		require.GreaterOrEqual(t, first(k.Poll(t.Context())), time.Millisecond)
		clock.Advance(time.Minute)
	}
	_, err = gen.Next()
	require.ErrorIs(t, err, lease.ErrEndOfTime)

	// The other number goes to the end as well, and then there is none.
	clock.Step(-10 * time.Minute)
	_, err = lease.Claim(t.Context(), memory.Client(), options...)
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), memory.Client(), options...)
	require.ErrorIs(t, err, lease.ErrEndOfTime)
	require.ErrorContains(t, err, end.Format(time.RFC3339))

	for _, at := range []time.Time{end, layout.Epoch.Add(-1), layout.Epoch.AddDate(-30, 0, 0)} {
		_, err = lease.Claim(t.Context(), storetest.NewMemory(), quiet(clocktest.NewVirtual(at), lease.WithLayout(layout))...)
		var option *stores.OptionError
		require.ErrorAs(t, err, &option, "%s", at)
	}
}

// A clock that goes back to before the epoch while a lease is held costs nothing but
// what the strategy says; only a new claim waits until it is right again.
func TestClockGoesBackBeforeTheEpoch(t *testing.T) {
	memory := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	k := claim(t, memory, clock)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(100*365*24*time.Hour)))
	require.NoError(t, err)
	before, err := gen.Next()
	require.NoError(t, err)
	clock.Step(-20 * 365 * 24 * time.Hour)
	require.True(t, clock.Wall().Before(gen.Layout().Epoch))
	for range 10 {
		clock.Advance(10 * time.Second)
		require.GreaterOrEqual(t, first(k.Poll(t.Context())), time.Millisecond)
	}
	require.NoError(t, k.Err())
	require.Positive(t, k.Stats().Extensions)
	clock.Step(20 * 365 * 24 * time.Hour)
	k.Poll(t.Context())
	after, err := gen.Next()
	require.NoError(t, err)
	require.Greater(t, after, before)
}

func TestWindowExtremes(t *testing.T) {
	hour := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Hour, TimeBits: 30, NodeBits: 4, SequenceBits: 8}
	nano := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: 1, TimeBits: 58, NodeBits: 2, SequenceBits: 3}
	for _, test := range []struct {
		layout snowflake.Layout
		window time.Duration
		ok     bool
	}{
		{snowflake.Default(), 6 * time.Millisecond, true},
		{snowflake.Default(), 6*time.Millisecond - 1, false},
		{snowflake.Default(), 366 * 24 * time.Hour, true},
		{snowflake.Default(), 366*24*time.Hour + 1, false},
		{snowflake.Default(), -time.Second, false},
		{hour, 0, true}, // the default is made longer
		{hour, 6 * time.Hour, true},
		{hour, 5 * time.Hour, false},
		{nano, 6, true},
		{nano, 5, false},
		{nano, 24 * time.Hour, true},
	} {
		t.Run(fmt.Sprintf("%s/%s", test.layout.Tick, test.window), func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			options := quiet(clock, lease.WithLayout(test.layout))
			if test.window != 0 {
				options = append(options, lease.WithWindow(test.window))
			}
			k, err := lease.Claim(t.Context(), storetest.NewMemory(), options...)
			if !test.ok {
				var option *stores.OptionError
				require.ErrorAs(t, err, &option)
				require.Equal(t, "WithWindow", option.Option)
				return
			}
			require.NoError(t, err)
			window := test.window
			if window == 0 {
				window = 6 * test.layout.Tick
			}
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
			require.NoError(t, err)
			for range 30 { // in time for what is needed, and no more than once in a third
				_, err := gen.Next()
				require.NoError(t, err)
				k.Poll(t.Context())
				clock.Advance(max(window/6, test.layout.Tick))
			}
			require.LessOrEqual(t, k.Stats().Extensions, uint64(16))
			require.NoError(t, gen.Close())
		})
	}
}

// Stores keep numbers of 22 bits, however many the layout has.
func TestManyNodeBits(t *testing.T) {
	layout := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Second, TimeBits: 32, NodeBits: 30, SequenceBits: 1}
	memory := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	for range 50 {
		k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(layout))...)
		require.NoError(t, err)
		require.Less(t, k.Node(), int64(1)<<22)
	}
	_, err := lease.Claim(t.Context(), memory, quiet(clock, lease.WithLayout(layout), lease.WithNode(lease.NodeNumber(1<<22)))...)
	var option *stores.OptionError
	require.ErrorAs(t, err, &option)
	require.Equal(t, "WithNode", option.Option)
}

// Clients of one store that fails at random never get the same grant.
func TestClaimsOnAStoreThatFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	memory := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	nodes := map[int64]bool{}
	for range 40 {
		store := memory.Client()
		store.Before = func(context.Context, storetest.Op) storetest.Fault { return storetest.Fault(rng.IntN(6)) % 4 }
		var k *lease.Keeper
		for err := lease.ErrStore; err != nil; {
			k, err = lease.Claim(t.Context(), store, quiet(clock, small(8))...)
			if late := memory.Late(); len(late) > 0 && rng.IntN(2) == 0 {
				memory.Deliver(rng.IntN(len(late)))
			}
		}
		require.False(t, nodes[k.Node()])
		nodes[k.Node()] = true
	}
}

// A clock that goes past the end of time while a claim is under way gets nothing, and
// takes nothing from the node number.
func TestClockGoesPastTheEndWithinAClaim(t *testing.T) {
	layout := snowflake.Default()
	memory := storetest.NewMemory()
	clock := clocktest.NewVirtual(noon)
	tried := 0
	memory.After = func(context.Context, storetest.Op) {
		if tried++; tried == 1 {
			clock.Step(layout.End().Sub(noon) + time.Minute)
		}
	}
	_, err := lease.Claim(t.Context(), memory, quiet(clock, lease.WithLayout(layout))...)
	require.ErrorIs(t, err, lease.ErrEndOfTime)
	cells, err := memory.List(t.Context(), "", "~", 5000)
	require.NoError(t, err)
	require.Len(t, cells, 1, "only the layout was written")
}
