package lease_test

import (
	"bytes"
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

// A process that held more than the store knows takes its grant back, says so, raises the
// cell, and goes on above all limits that it saw.
func TestStoreWentBack(t *testing.T) {
	for name, test := range map[string]struct {
		options []lease.Option
		empty   bool // the store has lost everything
		taken   bool // a newcomer has claimed the number meanwhile
	}{
		"restored":          {},
		"emptied":           {empty: true},
		"taken meanwhile":   {taken: true},
		"pinned":            {options: []lease.Option{five}},
		"pinned, emptied":   {options: []lease.Option{five}, empty: true},
		"pinned, and taken": {options: []lease.Option{five}, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			memory := storetest.NewMemory()
			restore := memory.Snapshot()
			var log bytes.Buffer
			k := claim(t, memory.Client(), clock, append(test.options, logTo(&log))...)
			if !test.empty {
				restore = memory.Snapshot()
			}
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
			require.NoError(t, err)
			for range 4 {
				clock.Advance(lease.DefaultWindow / 3)
				k.Poll(t.Context())
			}
			// Another's limit that it saw counts as well as its own.
			node := k.Node()
			_, limit := k.Granted()
			restore()
			if test.taken {
				claim(t, memory.Client(), clock, lease.WithNode(lease.NodeNumber(node)))
			}
			clock.Advance(lease.DefaultWindow / 3)
			k.Poll(t.Context())
			require.ErrorIs(t, k.Err(), stores.ErrWentBack)
			require.NotContains(t, k.Err().Error(), "\n")
			require.EqualValues(t, 1, k.Stats().WentBack)
			require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("level=ERROR")), "%s", log.String())
			_, err = gen.Next()
			require.ErrorIs(t, err, generator.ErrNotGranted, "what is left of the grant is not used")
			require.ErrorIs(t, err, stores.ErrWentBack)

			clock.Advance(time.Second)
			k.Poll(t.Context())
			require.NoError(t, k.Err())
			require.False(t, must(lease.Inspect(t.Context(), memory, node)).Limit.Before(limit), "the cell is raised")
			from, _ := k.Granted()
			require.False(t, from.Before(limit), "%s is before %s", from, limit)
			if len(test.options) > 0 {
				require.Equal(t, node, k.Node())
			}
			id, err := gen.Next()
			require.NoError(t, err)
			require.False(t, must(gen.Layout().Decode(id)).Time.Before(limit))
		})
	}
}

// An operator's release does not lower the limit: it is not a store that went back.
func TestForceReleaseIsNotGoingBack(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	k := claim(t, memory.Client(), clock)
	require.NoError(t, lease.ForceRelease(t.Context(), memory, k.Node()))
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	require.NoError(t, k.Err())
	require.Zero(t, k.Stats().WentBack)
	require.EqualValues(t, 1, k.Stats().Conflicts)
}

// A limit of another process that was seen counts: its cell may have gone back, too.
func TestClaimsAboveAllThatWasSeen(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	clock.Step(time.Hour)
	ahead := claim(t, memory.Client(), clock, small(1), lease.WithNode(lease.NodeNumber(1)))
	_, seen := ahead.Granted()
	clock.Step(-time.Hour)
	k := claim(t, memory.Client(), clock, small(1), lease.WithNode(lease.NodeNumber(0)))
	cells, err := memory.List(t.Context(), "", "~", 10)
	require.NoError(t, err)
	require.Len(t, cells, 3)
	for _, c := range cells { // both go back to where nothing was granted
		if _, ok := cell.NodeOf(c.Key); !ok {
			continue
		}
		r, err := cell.DecodeNode(c.Value)
		require.NoError(t, err)
		r.Floor, r.Limit, r.Holder, r.Write = 1, 1, "", "restored"
		_, err = memory.Swap(t.Context(), c.Key, c.Version, r.Encode())
		require.NoError(t, err)
	}
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	require.ErrorIs(t, k.Err(), stores.ErrWentBack)
	clock.Advance(time.Second)
	k.Poll(t.Context())
	from, _ := k.Granted()
	require.False(t, from.Before(seen), "%s is before %s", from, seen)
}
