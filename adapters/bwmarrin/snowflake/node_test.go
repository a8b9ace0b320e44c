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
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var quiet = lease.WithLogger(slog.New(slog.DiscardHandler))

// layout sets the package's layout for a test.
func layout(t *testing.T, epoch time.Time, nodeBits, stepBits uint8) {
	e, n, s := snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits
	t.Cleanup(func() { snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = e, n, s })
	snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = epoch.UnixMilli(), nodeBits, stepBits
}

// A full millisecond is waited for. In a bubble, whose time begins in 2000, a node works with an epoch
// before that.
func TestGenerateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := snowflake.NewNode(901)
		assert.ErrorContains(t, err, "epoch")
		layout(t, time.Unix(0, 0), 10, 1)
		node, err := snowflake.NewNode(901)
		require.NoError(t, err)
		begin, last := time.Now(), snowflake.ID(0)
		for range 10 { // a millisecond has two
			id := node.Generate()
			require.Greater(t, id, last)
			last = id
		}
		assert.Equal(t, 4*time.Millisecond, time.Since(begin).Truncate(time.Millisecond))
		assert.Zero(t, node.Generator().Stats().BorrowedTicks)
	})
}

// The parts of an ID are those that the layout says, the default one is Twitter's, and what cannot
// work is refused.
func TestLayouts(t *testing.T) {
	twitter := flake.Twitter()
	twitter.Name, twitter.Parts = "", nil
	assert.Equal(t, twitter, snowflake.Layout())
	id := snowflake.ID(1541815603606036480)
	assert.Equal(t, []int64{1656432460105, 378, 0}, []int64{id.Time(), id.Node(), id.Step()})

	for c, timeBits := range map[[3]int]int{{2020, 10, 12}: 41, {2021, 10, 12}: 41, {2020, 1, 21}: 41, {2020, 22, 0}: 41, {2020, 5, 5}: 53, {2020, 0, 1}: 62, {2020, 0, 0}: 62} {
		layout(t, time.Date(c[0], 1, 2, 3, 4, 5, 678e6, time.UTC), uint8(c[1]), uint8(c[2]))
		l := snowflake.Layout()
		assert.Equal(t, timeBits, l.TimeBits)
		node, err := snowflake.NewNode(l.MaxNode())
		require.NoError(t, err)
		id := node.Generate()
		parts, err := l.Decode(flake.ID(id))
		require.NoError(t, err)
		assert.Equal(t, []int64{parts.Time.UnixMilli(), l.MaxNode(), parts.Sequence}, []int64{id.Time(), id.Node(), id.Step()}, "%v", c)
		assert.InDelta(t, time.Now().UnixMilli(), id.Time(), 60_000, "%v", c)
		for _, outside := range []int64{-1, l.MaxNode() + 1} {
			_, err = snowflake.NewNode(outside)
			require.ErrorIs(t, err, flake.ErrRange)
			assert.ErrorContains(t, err, fmt.Sprintf("node %d is", outside))
		}
	}
	for name, set := range map[string]func(){
		"no bits for the time":     func() { layout(t, time.UnixMilli(0), 40, 30) },
		"more bits than there are": func() { layout(t, time.UnixMilli(0), 255, 255) },
		"time is over":             func() { layout(t, time.UnixMilli(0), 20, 30) },
		"before 1970":              func() { layout(t, time.UnixMilli(-1), 10, 12) },
		"epoch still to come":      func() { layout(t, time.Now().Add(time.Hour), 10, 12) },
	} {
		set()
		_, err := snowflake.NewNode(0)
		assert.ErrorIs(t, err, flake.ErrLayout, name)
	}
}

// leased returns a node with the number 1 under a lease.
func leased(t *testing.T, ctx context.Context, store stores.Store, options ...lease.Option) *snowflake.Node {
	t.Helper()
	options = append([]lease.Option{quiet, lease.WithLayout(snowflake.Layout()), lease.WithNode(1)}, options...)
	keeper, err := lease.Claim(ctx, store, options...)
	require.NoError(t, err)
	node, err := snowflake.NewLeasedNode(keeper)
	require.NoError(t, err)
	return node
}

// A process crashes at noon, and starts again with its clock back. Up to an hour is borrowed, and more is
// waited for, as long as the caller says.
func TestBehindTheGrant(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for back, wait := range map[time.Duration]time.Duration{time.Second: 0, 50 * time.Minute: 0, 2 * time.Hour: time.Hour} {
		store := storetest.NewMemory()
		start := func(clock *clocktest.Virtual) *snowflake.Node {
			clock.AutoAdvance(true) // a wait makes the time pass
			return leased(t, new(seam.Poller).In(t.Context()), store.Client(), lease.WithClock(clock))
		}
		start(clocktest.NewVirtual(noon))
		clock := clocktest.NewVirtual(noon.Add(-back))
		node := start(clock)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := node.GenerateContext(ended)
		assert.ErrorIs(t, err, context.Canceled)
		id, err := node.GenerateContext(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, noon.UnixMilli(), id.Time(), 60_000)
		assert.InDelta(t, wait, clock.Passed(), float64(time.Minute))
	}
}

// Generate waits for a store that is away, and panics where waiting is in vain.
func TestGenerateWithoutGrant(t *testing.T) {
	layout(t, time.Unix(0, 0), 10, 12) // before the time of a bubble
	failure := func(node *snowflake.Node) (err error) {
		defer func() { err, _ = recover().(error) }()
		node.Generate()
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		node := leased(t, t.Context(), store)
		store.Fail(storetest.Unavailable)
		time.Sleep(time.Minute) // the grant ends
		began := time.Now()
		time.AfterFunc(time.Minute, func() { store.Fail(storetest.None) })
		node.Generate()
		assert.GreaterOrEqual(t, time.Since(began), time.Minute)

		other := leased(t, t.Context(), store.Client()) // takes the number over
		time.Sleep(2 * time.Minute)
		other.Generate()
		err := failure(node)
		require.ErrorIs(t, err, lease.ErrLost)
		require.ErrorContains(t, err, "snowflake: no ID can be issued any more")
		require.NoError(t, other.Close())
		require.ErrorIs(t, failure(other), generator.ErrClosed)
		_ = node.Close()

		layout(t, time.Now().Add(time.Second-1<<39*time.Millisecond), 10, 14) // 39 bits of time, which end in a second
		last, err := snowflake.NewNode(1)
		require.NoError(t, err)
		last.Generate()
		time.Sleep(time.Second)
		require.ErrorIs(t, failure(last), lease.ErrEndOfTime)
	})
	_, err := snowflake.NewLeasedNode(nil)
	require.ErrorAs(t, err, new(*stores.OptionError))
	keeper, err := lease.Claim(t.Context(), storetest.NewMemory(), quiet)
	require.NoError(t, err)
	defer keeper.Close()
	_, err = snowflake.NewLeasedNode(keeper)
	require.ErrorContains(t, err, "the lease is for the layout")
}
