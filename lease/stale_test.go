package lease_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// stale is a store whose lists are out of date, as a cluster's may be.
type stale struct {
	*storetest.Memory
	list []stores.Cell
}

func (s stale) List(_ context.Context, from, to string, _ int) (cells []stores.Cell, err error) {
	for _, cell := range s.list {
		if from <= cell.Key && cell.Key < to {
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

var five = lease.WithNode(lease.NodeNumber(5))

// Who takes its own number up again goes by the cell as it is, not by an old list.
func TestPinnedClaimOnAStaleList(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	before, err := memory.List(t.Context(), "", "~", 5000)
	require.NoError(t, err)
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, five)...)
	require.NoError(t, err)
	claimed, err := memory.List(t.Context(), "", "~", 5000)
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 3)
	k.Poll(t.Context())
	_, limit := k.Granted()
	for _, list := range [][]stores.Cell{before, claimed} {
		next, err := lease.Claim(t.Context(), stale{memory.Client(), list}, quiet(clock, five)...)
		require.NoError(t, err)
		from, until := next.Granted()
		require.Equal(t, limit, from)
		limit = until
		clock.Advance(time.Second)
	}
}

// A write of unknown outcome that has landed is ours, and what it granted, though no list
// shows it yet.
func TestPinnedClaimThatLanded(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	memory := storetest.NewMemory()
	store := memory.Client()
	swaps, reads := 0, 0
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		switch {
		case op.Key == cell.LayoutKey:
		case op.Kind == storetest.OpSwap:
			swaps++
			return storetest.ReplyLost
		case op.Kind == storetest.OpRead:
			if reads++; reads == 2 { // of what has become of it
				return storetest.Unavailable
			}
		}
		return storetest.None
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	k, err := lease.Claim(ctx, stale{store, nil}, quiet(clock, five)...)
	require.NoError(t, err)
	require.Equal(t, 1, swaps)
	from, until := k.Granted()
	require.True(t, from.Equal(noon), from)
	require.True(t, until.Equal(noon.Add(lease.DefaultWindow)), until)
}

// outdated is a store whose next read, or each, shows what a cell was once.
type outdated struct {
	*storetest.Memory
	old  *stores.Cell
	each bool
}

func (s *outdated) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := s.Memory.Read(ctx, key)
	if err != nil || s.old == nil {
		return c, err
	}
	c = *s.old
	if !s.each {
		s.old = nil
	}
	return c, nil
}

// A read of an older state looks as if the store went back: nothing is issued until another read, which
// tells that it did not.
func TestReadOfAnOlderState(t *testing.T) {
	for name, away := range map[string]bool{"the next read tells": false, "the store goes away before it": true} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			store := &outdated{Memory: storetest.NewMemory()}
			var log bytes.Buffer
			k := claim(t, store, clock, five, logTo(&log))
			gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
			require.NoError(t, err)
			old := store.Peek(cell.NodeKey(5))
			clock.Advance(lease.DefaultWindow / 2)
			k.Poll(t.Context())
			clock.Advance(lease.DefaultWindow / 2)
			store.old = &old
			store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if isSwap(op) || away && store.old == nil {
					return storetest.Unavailable // and so the cell is read
				}
				return storetest.None
			}
			k.Poll(t.Context())
			require.Contains(t, log.String(), `level=WARN msg="lease: node number 5 was granted to this process up to 2029-06-01T12:00:45.000Z, and its limit is 2029-06-01T12:00:30.000Z (tick `)
			_, err = gen.Next()
			if away {
				require.ErrorIs(t, err, generator.ErrNotGranted)
				clock.Advance(grant.Urgent)
				store.Before = nil
				k.Poll(t.Context())
				_, err = gen.Next()
			}
			require.NoError(t, err)
			require.Contains(t, log.String(), `level=INFO msg="lease: the store had answered with an older state, and has all writes" node=5`)
			require.Zero(t, k.Stats().WentBack)
			store.Before = nil
			clock.Advance(grant.Urgent)
			k.Poll(t.Context())
			require.NoError(t, k.Err())
			require.NoError(t, gen.Close())
		})
	}
}

// What is left of a grant is issued also if the read that ends a suspicion shows that another process
// has the number since.
func TestSuspicionAndLoss(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	store := &outdated{Memory: storetest.NewMemory()}
	client := store.Memory.Client()
	k := claim(t, store, clock, five)
	gen, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(t, err)
	old := store.Peek(cell.NodeKey(5))
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	clock.Advance(lease.DefaultWindow / 2)
	store.old = &old
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if isSwap(op) || store.old == nil {
			return storetest.Unavailable
		}
		return storetest.None
	}
	k.Poll(t.Context())
	_, err = gen.Next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	_, err = lease.Claim(t.Context(), client, quiet(clock, five)...)
	require.NoError(t, err)
	store.Before = nil
	clock.Advance(time.Second)
	k.Poll(t.Context())
	require.ErrorIs(t, k.Err(), lease.ErrLost)
	_, err = gen.Next()
	require.NoError(t, err)
}

// A store whose reads stay out of date is named as the cause, and asked again soon.
func TestReadsStayOutOfDate(t *testing.T) {
	for name, test := range map[string]struct {
		newer int // writes of the process that the reads do not show
		says  string
		wait  time.Duration
	}{
		"they show an older write": {1, "the store has answered with an older state, or went back", time.Second},
		"they show the last write": {0, "the store does not extend the cell that it shows, 8 times in a row: it answers reads that are out of date", lease.DefaultWindow},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktest.NewVirtual(noon)
			store := &outdated{Memory: storetest.NewMemory(), each: true}
			client := store.Memory.Client()
			var log bytes.Buffer
			k := claim(t, store, clock, five, logTo(&log))
			old := store.Peek(cell.NodeKey(5))
			for range test.newer {
				clock.Advance(lease.DefaultWindow / 3)
				k.Poll(t.Context())
				require.NoError(t, k.Err())
			}
			_, err := lease.Claim(t.Context(), client, quiet(clock, five)...)
			require.NoError(t, err)
			store.old = &old
			clock.Advance(lease.DefaultWindow / 3)
			next := first(k.Poll(t.Context()))
			require.ErrorIs(t, k.Err(), lease.ErrStore)
			require.NotErrorIs(t, k.Err(), stores.ErrConflict)
			require.ErrorContains(t, k.Err(), test.says)
			require.LessOrEqual(t, next, test.wait)
			require.NotContains(t, log.String(), `"good until"=2025`, "the epoch")
			store.old = nil
		})
	}
}
