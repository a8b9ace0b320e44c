package generator_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// A change of the node number keeps the order, whichever number is larger.
func TestChangeOfNodeKeepsOrder(t *testing.T) {
	for _, order := range []snowflake.Order{snowflake.TimeNodeSequence, snowflake.TimeSequenceNode} {
		c, layout := newHandClock(), narrow()
		layout.Order = order
		l := &handLease{layout: layout, clock: c, first: grant(1, 0, 1_000)}
		g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		s, last := g.Stream(), snowflake.ID(-1)
		for i := range int64(50) {
			id := mustNext(t, g)
			require.Greater(t, id, last)
			d, err := layout.Decode(id)
			require.NoError(t, err)
			require.Equal(t, g.Node(), d.Node)
			if last, err = s.Next(); i%3 == 0 {
				require.NoError(t, err)
				require.Greater(t, last, id)
			} else {
				last = id
			}
			l.holder.Grant(grant((i*7+2)%4, 0, 1_000+i))
		}
		// A number that comes with a floor further ahead begins there.
		l.holder.Grant(grant(3, 500, 2_000))
		l.holder.Grant(grant(0, 700, 2_000))
		d, err := layout.Decode(mustNext(t, g))
		require.NoError(t, err)
		assert.Equal(t, 700*time.Millisecond, d.Time.Sub(noon))
		assert.Zero(t, d.Node)
	}
}

// The tick in which a node number changes counts as used up, not as a clock that is
// behind, so that whoever waits for the next tick goes on.
func TestChangeOfNodeCostsTheTick(t *testing.T) {
	g, l, _ := leased(t, 100, generator.WithStrategy(strategies.PerCause(strategies.Wait(), strategies.Reject())))
	mustNext(t, g)
	l.holder.Grant(grant(0, 0, 100))
	at, _ := decode(t, g, mustNext(t, g))
	assert.Equal(t, time.Millisecond, at)
}

// Callers of all kinds, while the node number changes under them: each slot once,
// in order.
func TestChangesAmongCallers(t *testing.T) {
	layout := wide()
	layout.NodeBits, layout.SequenceBits = 2, 14
	l := &handLease{layout: layout, clock: monoclock.New(), first: generator.Grant{Node: 1, Limit: math.MaxUint64, Renew: math.MaxUint64}}
	g := newGenerator(t, generator.WithLease(l), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))

	stop := make(chan struct{})
	var changes errgroup.Group
	changes.Go(func() error {
		for node := int64(0); ; node = (node + 3) % 4 {
			select {
			case <-stop:
				return nil
			default:
				l.holder.Grant(generator.Grant{Node: node, Limit: math.MaxUint64, Renew: math.MaxUint64})
			}
		}
	})
	var mu sync.Mutex
	var all []snowflake.ID
	callers := 0
	history := record(t, 3, 3_000, func() func() (first, last snowflake.ID, err error) {
		callers++
		batch := make([]snowflake.ID, 1+callers%3)
		return func() (first, last snowflake.ID, err error) {
			n, err := g.NextN(batch)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, batch[:n]...)
			return batch[0], batch[len(batch)-1], err
		}
	})
	close(stop)
	require.NoError(t, changes.Wait())
	checkOrder(t, history, func(a, b snowflake.ID) bool { return a < b })
	slices.Sort(all)
	assert.Equal(t, len(all), len(slices.Compact(all)))
}

func TestCloseReleases(t *testing.T) {
	t.Run("after some IDs", func(t *testing.T) {
		g, l, _ := leased(t, 100, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		for range 9 { // two ticks and one ID
			mustNext(t, g)
		}
		l.err = errors.New("store is away")
		require.ErrorIs(t, g.Close(), l.err)
		require.NoError(t, g.Close(), "again")
		assert.Equal(t, []uint64{noonTick + 3}, l.released)
	})
	t.Run("before any ID", func(t *testing.T) {
		l := &handLease{layout: narrow(), clock: newHandClock(), first: grant(1, 50, 100)}
		g := newGenerator(t, generator.WithLease(l))
		require.NoError(t, g.CloseContext(t.Context()))
		assert.Equal(t, []uint64{noonTick + 50}, l.released)
	})
	t.Run("a stream holds a block", func(t *testing.T) {
		layout := wide()
		layout.NodeBits, layout.SequenceBits = 2, 14
		c := newHandClock()
		l := &handLease{layout: layout, clock: c, first: generator.Grant{Limit: math.MaxUint64, Renew: math.MaxUint64}}
		g := newGenerator(t, generator.WithLease(l))
		s := g.Stream()
		for range 100 {
			_, err := s.Next()
			require.NoError(t, err)
		}
		tick := uint64(noon.Sub(layout.Epoch) / layout.Tick)
		require.NoError(t, g.Close())
		assert.Equal(t, []uint64{tick + 1}, l.released)
		_, err := s.Next()
		require.ErrorIs(t, err, generator.ErrClosed)
	})
	t.Run("sealed by the lease", func(t *testing.T) {
		g, l, _ := leased(t, 100)
		mustNext(t, g)
		assert.EqualValues(t, int64(noonTick+1), l.holder.Tick())
		end, first := l.holder.Seal()
		assert.True(t, first)
		assert.EqualValues(t, int64(noonTick+1), end)
		_, err := g.Next()
		require.ErrorIs(t, err, generator.ErrClosed)
		require.NoError(t, g.Close())
		assert.Empty(t, l.released, "whoever seals releases")
		l.holder.Grant(grant(2, 0, 100))
		_, err = g.Next()
		require.ErrorIs(t, err, generator.ErrClosed)
	})
}

// However Close, Seal and a change of the node number meet, one of them ends it,
// and no ID comes after that.
func TestCloseAgainstChanges(t *testing.T) {
	for range 2_000 {
		g, l, _ := leased(t, 1_000_000, generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		var group errgroup.Group
		var ends atomic.Int64
		group.Go(g.Close)
		group.Go(func() error {
			if _, first := l.holder.Seal(); first {
				ends.Add(1)
			}
			return nil
		})
		group.Go(func() error {
			for node := range int64(4) {
				l.holder.Grant(grant(node, 0, 1_000_000))
			}
			return nil
		})
		require.NoError(t, group.Wait())
		require.EqualValues(t, 1, ends.Load()+int64(len(l.released)))
		_, err := g.Next()
		require.ErrorIs(t, err, generator.ErrClosed)
	}
}
