package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// fill writes held cells for the node numbers from from to to, as if others had claimed
// them.
func fill(t *testing.T, memory *storetest.Memory, layout snowflake.Layout, from, to int64, limit uint64) {
	t.Helper()
	r := cell.Node{Holder: "other", Limit: limit, Window: 30_000, Write: "w", Layout: layout.String()}
	value := r.Encode()
	for node := from; node < to; node++ {
		_, err := memory.Swap(t.Context(), cell.NodeKey(node), 0, value)
		require.NoError(t, err)
	}
}

// Among millions of numbers, a claim looks at few; if a block is full, it looks on, in
// blocks of growing size, until it has found the last number that is free.
func TestClaimAmongMany(t *testing.T) {
	layout := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Millisecond, TimeBits: 41, NodeBits: 16, SequenceBits: 6}
	limit := uint64(noon.Add(time.Hour).Sub(layout.Epoch) / layout.Tick)
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	store := counted(memory.Client())
	_, err := lease.Claim(t.Context(), store, quiet(clock, lease.WithLayout(layout))...)
	require.NoError(t, err)
	require.LessOrEqual(t, trips(store), 4)

	memory = storetest.NewMemory()
	const hole = 40_000
	fill(t, memory, layout, 0, hole, limit)
	fill(t, memory, layout, hole+1, 1<<16, limit)
	store = memory.Client()
	read, longest := 0, 0
	asked := 0
	store.After = func(_ context.Context, op storetest.Op) {
		if op.Kind == storetest.OpList {
			asked++
		}
	}
	k, err := lease.Claim(t.Context(), store, quiet(clock, lease.WithLayout(layout))...)
	require.NoError(t, err)
	require.EqualValues(t, hole, k.Node())
	require.LessOrEqual(t, asked, 1<<16/4096+7, "%d %d", read, longest)
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(layout))...)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, err, &full)
	require.EqualValues(t, 1<<16, full.Held)
}

// What a keeper remembers does not grow with the store, nor with the time that it is away.
func TestMemoryIsBounded(t *testing.T) {
	layout := snowflake.Layout{Epoch: noon.AddDate(-3, 0, 0), Tick: time.Millisecond, TimeBits: 41, NodeBits: 14, SequenceBits: 8}
	limit := uint64(noon.Add(1000*time.Hour).Sub(layout.Epoch) / layout.Tick)
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	fill(t, memory, layout, 0, 1<<14-1, limit)
	store := memory.Client()
	k, err := lease.Claim(t.Context(), store, quiet(clock, lease.WithLayout(layout), lease.WithWindow(15*time.Minute))...)
	require.NoError(t, err)
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) {
			return storetest.Delayed
		}
		return storetest.None
	}
	for range 300 {
		clock.Advance(first(k.Poll(t.Context())))
	}
	names, _, _, _ := k.Remembers()
	require.Equal(t, 64, names)

	// A name that was forgotten, and lands, costs the number and nothing else.
	require.True(t, memory.Deliver(len(memory.Late())-64-10))
	store.Before = nil
	clock.Advance(grant.Urgent)
	k.Poll(t.Context())
	require.EqualValues(t, 1, k.Stats().Conflicts)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, k.Err(), &full, "all numbers were looked at")
	_, _, seen, _ := k.Remembers()
	require.Positive(t, seen)
	require.LessOrEqual(t, seen, 4096)
}

// Claims of unknown outcome are remembered in a small number, and read again.
func TestUnknownClaimsAreBounded(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	memory := storetest.NewMemory()
	store := memory.Client()
	swaps := 0
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) && swaps < 50 {
			swaps++
			return storetest.Delayed
		}
		return storetest.None
	}
	reads := 0
	store.After = func(_ context.Context, op storetest.Op) {
		if op.Kind == storetest.OpRead {
			reads++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	k, err := lease.Claim(ctx, store, quiet(clock)...)
	require.NoError(t, err)
	require.Equal(t, 50, swaps)
	require.LessOrEqual(t, reads, 51*18)
	node := k.Node()
	for range memory.Late() {
		memory.Deliver(0)
	}
	clock.Advance(15 * time.Second)
	k.Poll(t.Context())
	require.NoError(t, k.Err())
	require.Equal(t, node, k.Node())
}

// The layout stands in a cell of its own, which every claim reads.
func TestSecondLayoutIsRefused(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, small(8))...)
	require.NoError(t, err)
	require.NoError(t, k.Close())
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, small(7))...)
	var mismatch *lease.LayoutMismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, 7, mismatch.Ours.NodeBits)
	require.Equal(t, 8, mismatch.Theirs.NodeBits)

	// Parts with other names and a time field that was widened are the same fleet.
	fits := snowflake.Default()
	fits.NodeBits, fits.Name, fits.Parts = 8, "", []snowflake.Part{{Name: "a", Bits: 3}, {Name: "b", Bits: 5}}
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(fits))...)
	require.NoError(t, err)
	for _, change := range []func(*snowflake.Layout){
		func(l *snowflake.Layout) { l.SequenceBits-- }, func(l *snowflake.Layout) { l.Tick *= 2 },
		func(l *snowflake.Layout) { l.Epoch = l.Epoch.Add(time.Second) }, func(l *snowflake.Layout) { l.Order = snowflake.TimeSequenceNode },
	} {
		other := fits
		change(&other)
		_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(other))...)
		require.ErrorAs(t, err, &mismatch, "%s", other)
	}

	c := memory.Peek(cell.LayoutKey)
	_, err = memory.Swap(t.Context(), c.Key, c.Version, []byte("rubbish"))
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, small(8))...)
	require.ErrorIs(t, err, stores.ErrDamaged)
	require.ErrorContains(t, err, "layout")
}

// An error of a driver in several lines is one line here.
func TestErrorsAreOneLine(t *testing.T) {
	_, err := lease.Claim(t.Context(), shouting{storetest.NewMemory()}, quiet(clocktest.NewVirtual(noon))...)
	require.ErrorIs(t, err, lease.ErrStore)
	require.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, err, "refused; by all")
}

type shouting struct{ stores.Store }

func (shouting) Read(context.Context, string) (stores.Cell, error) {
	return stores.Cell{}, fmt.Errorf("refused\nby all")
}

// The real clock of benbjohnson/clock goes with the machine's time, and its mock does not.
func TestArchivedClocks(t *testing.T) {
	k, err := lease.Claim(t.Context(), storetest.NewMemory(), quiet(clock.New(), lease.WithWindow(time.Minute))...)
	require.NoError(t, err)
	require.NoError(t, k.Close())
	mock := clock.NewMock()
	mock.Set(noon)
	memory := storetest.NewMemory()
	holder, err := lease.Claim(t.Context(), memory.Client(), quiet(mock, small(0))...)
	require.NoError(t, err)
	defer holder.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	claimed := make(chan error)
	go func() {
		_, err := lease.Claim(ctx, memory.Client(), quiet(mock, small(0))...)
		claimed <- err
	}()
	for done := false; !done; { // it waits for the mock
		select {
		case err := <-claimed:
			require.NoError(t, err)
			done = true
		default:
			mock.Add(time.Second)
		}
	}
	require.False(t, mock.Now().Before(noon.Add(time.Minute)))
}
