//go:build unix

package rig

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestMain(m *testing.M) { Main(m, nil) }

// serve is Serve until the test ends.
func serve(t *testing.T, c ServeConfig) *Server {
	t.Helper()
	s, err := Serve(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// Every caller gets IDs and numbers of a server that was drained, killed, and started again at
// its addresses. A refusal is told from an error.
func TestServeAndCallers(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	_, err := Tickflake(t.Context(), false, "sequence", "create", "orders", "--store", store)
	require.NoError(t, err)
	s := serve(t, ServeConfig{Store: store, Args: []string{"--strategy", "reject", "--layout", "41/10/0"}})
	require.NoError(t, s.End())
	require.NoError(t, s.Start())
	require.NoError(t, s.Kill())
	require.NoError(t, s.Start())
	goClient, err := GoClient(t.Context(), []string{s.GRPC})
	require.NoError(t, err)
	callers := map[string]Caller{"client": goClient}
	for _, p := range Protocols {
		callers[p.Name] = p.Open(p.At(s))
	}
	var numbers Ledger
	for name, c := range callers {
		for range 3 {
			begin := Now()
			first, err := c.Numbers(t.Context(), "orders", 5)
			require.NoError(t, err, name)
			numbers.Add(name, begin, Now(), first, first+1, first+2, first+3, first+4)
		}
		_, err = c.Numbers(t.Context(), "no-such-sequence", 1)
		require.Error(t, err, name)
		_, allowed := Class(err)
		assert.False(t, allowed, "%s: %v", name, err)
		if _, err = c.IDs(t.Context(), 1); name == "client" {
			require.NoError(t, err)
		}
		_, err = c.IDs(t.Context(), 40) // of a layout that has one ID in a tick
		var refused *Refused
		if assert.ErrorAs(t, err, &refused, name) {
			assert.True(t, refused.Busy, "%s: %v", name, err)
		}
	}
	n, example := numbers.Twice()
	assert.Zero(t, n, example)
	size := s.Size(t.Context())
	assert.Positive(t, size.RSS)
	assert.Positive(t, size.Goroutines)
	assert.Positive(t, size.Files)
	require.NoError(t, s.Kill())
	for name, c := range callers {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := c.Numbers(ctx, "orders", 1)
		cancel()
		class, allowed := Class(err)
		assert.True(t, allowed, "%s: %s", name, class)
		assert.NoError(t, c.Close())
	}
}

// A server's clock is stepped: at once if it reads the wall clock, and else at its next start.
func TestClock(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, raw := range map[string]bool{"monoclock": false, "raw": true} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, ServeConfig{Store: t.TempDir(), Clock: true, Raw: raw})
			c := Redis(s.RESP)
			defer c.Close()
			ahead := func() bool {
				ids, err := c.IDs(t.Context(), 1)
				require.NoError(t, err)
				d, err := snowflake.Default().Decode(snowflake.ID(ids[0]))
				require.NoError(t, err)
				return time.Until(d.Time) > hour/2
			}
			assert.False(t, ahead())
			s.Clock.Set(hour)
			assert.Equal(t, raw, ahead())
			require.NoError(t, s.End())
			require.NoError(t, s.Start())
			_, _ = c.IDs(t.Context(), 1) // by the connection from before
			assert.True(t, ahead())
		})
	}
}
