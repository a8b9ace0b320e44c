//go:build unix

package rig

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestMain(m *testing.M) { Main(m, nil) }

// A server's clock is stepped: at once if it reads the wall clock, and else at its next start.
func TestClock(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, raw := range map[string]bool{"monoclock": false, "raw": true} {
		t.Run(name, func(t *testing.T) {
			s, err := Serve(t.Context(), ServeConfig{Store: t.TempDir(), Clock: true, Raw: raw})
			require.NoError(t, err)
			defer func() { assert.NoError(t, s.Close()) }()
			c := Protocols[0].Open(s.RESP)
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
