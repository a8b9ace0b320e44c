package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

func TestReserve(t *testing.T) {
	for name, locks := range map[string]bool{"all hosts": false, "one host": true} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(time.Now().Truncate(time.Second))
			memory := storetest.NewMemory()
			store := func() stores.Store {
				if locks {
					return memory.Client().Locking()
				}
				return memory.Client()
			}
			options := quiet(clock, small(2))
			until := clock.Wall().AddDate(0, 6, 0)
			holder, err := lease.Claim(t.Context(), store(), append(options, lease.WithNode(lease.NodeNumber(3)))...)
			require.NoError(t, err)
			err = lease.Reserve(t.Context(), store(), 0, 3, until, options...)
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "3")
			require.NoError(t, holder.Close())

			// The numbers before it are reserved, and no process gets one.
			holdings, err := lease.List(t.Context(), store())
			require.NoError(t, err)
			require.Len(t, holdings, 4)
			for _, h := range holdings[:3] {
				require.Equal(t, lease.Reserved, h.State)
				require.WithinDuration(t, until, h.Limit, 2*time.Millisecond)
				require.False(t, h.Limit.Before(until))
			}
			clock.Advance(time.Hour)
			k, err := lease.Claim(t.Context(), store(), options...)
			require.NoError(t, err)
			require.EqualValues(t, 3, k.Node())
			_, err = lease.Claim(t.Context(), store(), options...)
			var full *lease.NoFreeNodeError
			require.ErrorAs(t, err, &full)
			require.EqualValues(t, 4, full.Held)
			_, err = lease.Claim(t.Context(), store(), append(options, lease.WithNode(lease.NodeNumber(1)))...)
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "reserved until "+holdings[1].Limit.Format("2006-01-02"))
			require.ErrorIs(t, lease.ForceRelease(t.Context(), store(), 1), lease.ErrHeld)

			// A later date extends it, an earlier one changes nothing.
			later := until.AddDate(0, 1, 0)
			require.NoError(t, lease.Reserve(t.Context(), store(), 0, 0, later, options...))
			version := memory.Peek(cell.NodeKey(0)).Version
			require.NoError(t, lease.Reserve(t.Context(), store(), 0, 0, until, options...))
			require.Equal(t, version, memory.Peek(cell.NodeKey(0)).Version)
			require.WithinDuration(t, later, must(lease.Inspect(t.Context(), store(), 0)).Limit, 2*time.Millisecond)

			// After the date, the number is as any other, and begins at the date.
			clock.Step(until.Add(time.Second).Sub(clock.Wall()))
			next, err := lease.Claim(t.Context(), store(), append(options, lease.WithNode(lease.NodeNumber(1)))...)
			require.NoError(t, err)
			from, _ := next.Granted()
			require.False(t, from.Before(until))
			require.Equal(t, lease.Held, must(lease.Inspect(t.Context(), memory, 1)).State)
		})
	}
}

func TestReserveRefuses(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	options := quiet(clock, small(2))
	memory := storetest.NewMemory()
	for _, test := range []struct {
		from, to int64
		until    time.Time
	}{{-1, 2, noon.Add(time.Hour)}, {2, 1, noon.Add(time.Hour)}, {0, 4, noon.Add(time.Hour)}, {0, 1, noon}, {0, 1, noon.AddDate(500, 0, 0)}} {
		err := lease.Reserve(t.Context(), memory, test.from, test.to, test.until, options...)
		var option *stores.OptionError
		require.ErrorAs(t, err, &option)
		require.Equal(t, "Reserve", option.Option)
	}
	require.NoError(t, lease.Reserve(t.Context(), memory, 0, 1, noon.Add(time.Hour), options...))
	var other *lease.LayoutMismatchError
	require.ErrorAs(t, lease.Reserve(t.Context(), memory, 0, 1, noon.Add(time.Hour), quiet(clock, small(3))...), &other)
}

// A process that an operator took for dead may issue IDs with its number until the end of
// its grant. So the number is reserved only after that.
func TestReserveWaitsForTheEndOfTheGrant(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	options := quiet(clock, small(2))
	k, err := lease.Claim(t.Context(), memory.Client(), append(options, lease.WithNode(lease.NodeNumber(3)))...)
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	require.NoError(t, lease.ForceRelease(t.Context(), memory, 3))
	until := noon.Add(time.Hour)
	_, err = gen.Next()
	require.NoError(t, err, "it lives")
	err = lease.Reserve(t.Context(), memory, 3, 3, until, options...)
	require.ErrorIs(t, err, lease.ErrHeld)
	_, limit := k.Granted()
	require.ErrorContains(t, err, limit.Format("15:04:05"))
	clock.Advance(lease.DefaultWindow)
	require.NoError(t, lease.Reserve(t.Context(), memory, 3, 3, until, options...))
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
}
