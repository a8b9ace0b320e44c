package generator_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// closing is a store that counts how often it was closed.
type closing struct {
	stores.Store
	cells  stores.Store // the same, and stays open
	closed int
}

func (s *closing) Close() error { s.closed++; return s.Store.Close() }

// register makes a store in memory known as opentest://.
func register() *closing {
	cells := storetest.NewMemory()
	s := &closing{Store: cells.Client(), cells: cells}
	stores.Register("opentest", func(context.Context, string) (stores.Store, error) { return s, nil })
	return s
}

func holdings(t *testing.T, s stores.Store) map[int64]lease.State {
	t.Helper()
	states := map[int64]lease.State{}
	held, err := lease.List(t.Context(), s)
	require.NoError(t, err)
	for _, h := range held {
		states[h.Node] = h.State
	}
	return states
}

func TestOpenPassesOptionsAndClosesTheStore(t *testing.T) {
	s, clock := register(), monoclock.New()
	g, err := generator.Open(t.Context(), "opentest://", generator.WithLayout(snowflake.Twitter()), generator.WithClock(clock),
		generator.WithNode(7), generator.WithLeaseOptions(lease.WithWindow(time.Hour)))
	require.NoError(t, err)
	assert.EqualValues(t, 7, g.Node())
	assert.Equal(t, snowflake.Twitter(), g.Layout())
	assert.Same(t, clock, g.Clock())
	assert.Greater(t, g.Stats().Remaining, 50*time.Minute)
	assert.Same(t, s, g.Store())
	assert.Equal(t, map[int64]lease.State{7: lease.Held}, holdings(t, s.cells))
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	assert.Equal(t, 1, s.closed)
	assert.Equal(t, map[int64]lease.State{7: lease.Released}, holdings(t, s.cells))
}

// TestCloseGoesOn guards that a Close whose context ends while the store hangs, which ignores contexts, releases the
// number all the same, and closes the store after that if Open opened it.
func TestCloseGoesOn(t *testing.T) {
	for closed, begin := range []func(t *testing.T, s *closing) (*generator.Generator, error){
		func(t *testing.T, s *closing) (*generator.Generator, error) {
			k, err := lease.Claim(t.Context(), s, lease.WithNode(7))
			require.NoError(t, err)
			return generator.New(generator.WithLease(k))
		},
		func(t *testing.T, _ *closing) (*generator.Generator, error) {
			return generator.Open(t.Context(), "opentest://", generator.WithNode(7))
		},
	} {
		inBubble(t, func(t *testing.T) {
			s, goOn := register(), make(chan struct{})
			g, err := begin(t, s)
			require.NoError(t, err)
			s.Store.(*storetest.Memory).Before = func(context.Context, storetest.Op) storetest.Fault {
				<-goOn
				return storetest.None
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, g.CloseContext(ended), lease.ErrNotReleased)
			assert.Zero(t, s.closed)
			close(goOn)
			require.NoError(t, g.Close(), "it waits for the same")
			assert.Equal(t, closed, s.closed)
			assert.Equal(t, map[int64]lease.State{7: lease.Released}, holdings(t, s.cells))
		})
	}
}

// TestOpenHangs: Open ends with its context, also while the store hangs, or its server does.
func TestOpenHangs(t *testing.T) {
	for _, opens := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			s := register()
			s.Store.(*storetest.Memory).Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
				if opens || op.Key != "probe" { // by which stores.Open asks whether it answers
					<-ctx.Done()
				}
				return storetest.None
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			require.ErrorIs(t, second(generator.Open(ctx, "opentest://")), context.DeadlineExceeded)
			assert.LessOrEqual(t, time.Since(begin), time.Second)
		})
	}
}

// TestOpenRefuses: what the lease refuses is refused before the store is opened.
func TestOpenRefuses(t *testing.T) {
	for option, given := range map[string]lease.Option{"WithWindow": lease.WithWindow(-time.Second), "WithWallWithin": lease.WithWallWithin(time.Second)} {
		_, err := generator.Open(t.Context(), "nosuch://", generator.WithLeaseOptions(given))
		var refused *stores.OptionError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, option, refused.Option)
	}
}

// TestOpenGivesBack guards that a step that fails leaves neither an open store nor a
// node number that is held.
func TestOpenGivesBack(t *testing.T) {
	other := snowflake.Default()
	other.NodeBits, other.SequenceBits = 8, 14
	short := snowflake.Default() // for a start below 3000
	short.SequenceBits = 2
	for name, opts := range map[string][]generator.Option{
		"another layout": {generator.WithLayout(other)},
		"the generator fails": {generator.WithSequenceStart(strategies.StartRandom(3000)),
			generator.WithLeaseOptions(lease.WithLayout(other), lease.WithLayout(short))},
	} {
		t.Run(name, func(t *testing.T) {
			s := register()
			if name == "another layout" {
				k, err := lease.Claim(t.Context(), s.cells)
				require.NoError(t, err)
				require.NoError(t, k.Close())
			}
			_, err := generator.Open(t.Context(), "opentest://", opts...)
			require.Error(t, err)
			assert.Equal(t, 1, s.closed)
			for node, state := range holdings(t, s.cells) {
				assert.NotEqual(t, lease.Held, state, "node %d", node)
			}
		})
	}
}

// TestOpenGivesBackLate: the store stays open until the number is released, also if the context has ended when the
// generator fails.
func TestOpenGivesBackLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, goOn := register(), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		s.Store.(*storetest.Memory).Before = func(context.Context, storetest.Op) storetest.Fault {
			if ctx.Err() != nil {
				<-goOn
			}
			return storetest.None
		}
		short := snowflake.Default()
		short.SequenceBits = 2
		_, err := generator.Open(ctx, "opentest://", generator.WithSequenceStart(strategies.StartRandom(3000)), generator.WithLeaseOptions(
			lease.WithLayout(short), lease.WithLogger(slog.New(slog.NewTextHandler(canceling(cancel), nil)))))
		require.ErrorIs(t, err, lease.ErrNotReleased)
		synctest.Wait()
		assert.Zero(t, s.closed)
		close(goOn)
		synctest.Wait()
		assert.Equal(t, 1, s.closed)
		for node, state := range holdings(t, s.cells) {
			assert.Equal(t, lease.Released, state, "node %d", node)
		}
	})
}

// canceling ends a context when a number was claimed.
type canceling context.CancelFunc

func (c canceling) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("lease: claimed")) {
		c()
	}
	return len(line), nil
}

func TestLeaseOptions(t *testing.T) {
	s := storetest.NewMemory()
	k, err := lease.Claim(t.Context(), s)
	require.NoError(t, err)
	other := snowflake.Default()
	other.SequenceBits = 3
	for option, opts := range map[string][]generator.Option{
		"WithClock":  {generator.WithLease(k), generator.WithClock(newHandClock())},
		"WithNode":   {generator.WithLease(k), generator.WithNode(1)},
		"WithLayout": {generator.WithLease(k), generator.WithLayout(other)},
		"WithLease":  {generator.WithLease(nil)},
		"WithLogger": {generator.WithNode(1), silent},
	} {
		_, err := generator.New(opts...)
		var config *stores.OptionError
		require.ErrorAs(t, err, &config)
		assert.Equal(t, option, config.Option)
	}
	_, err = generator.Open(t.Context(), "no-such-engine://", generator.WithLease(k))
	require.ErrorContains(t, err, "Open claims a new lease")
	_, err = generator.Open(t.Context(), "no-such-engine://", generator.WithLogger(nil))
	require.ErrorContains(t, err, "WithLogger: logger is nil")
	_, err = generator.New(generator.WithNode(1), generator.WithLeaseOptions(lease.WithWindow(time.Second)))
	require.ErrorContains(t, err, "lease.Claim")
	require.ErrorIs(t, newGenerator(t).Restored(t.Context()), generator.ErrNoLease)
	g, err := generator.New(generator.WithLease(k), generator.WithLayout(snowflake.Default()))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Restored(ended), context.Canceled)
	_, err = generator.New(generator.WithLease(k))
	require.ErrorContains(t, err, "bound to another generator")
	require.NoError(t, g.Close())
	_, err = generator.New(generator.WithLease(k))
	require.Error(t, err, "it is closed")
}
