package client

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/snowflake"
)

// TestFallback guards that a fallback is counted and logged, and that it is used only when no
// server serves.
func TestFallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		next, failing := snowflake.ID(7), error(nil)
		var log strings.Builder
		c := open(t, []*fake{s}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithTimeout(time.Second),
			WithFallback(func(ctx context.Context, cause error) (snowflake.ID, error) {
				assert.ErrorIs(t, cause, ErrUnavailable)
				assert.NoError(t, ctx.Err())
				next++
				return next, failing
			}))
		_, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Zero(t, c.Stats().Fallbacks)
		s.fail(status.Error(codes.Unauthenticated, "no token"))
		_, err = c.Next(t.Context())
		assert.ErrorIs(t, err, ErrDenied)
		assert.Zero(t, c.Stats().Fallbacks)

		s.stop()
		id, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, snowflake.ID(8), id)
		ids := make([]snowflake.ID, 3)
		require.NoError(t, c.NextN(t.Context(), ids))
		assert.Equal(t, []snowflake.ID{9, 10, 11}, ids)
		assert.Equal(t, uint64(4), c.Stats().Fallbacks)
		assert.Equal(t, 1, strings.Count(log.String(), "IDs come from the fallback"), "%s", &log)
		time.Sleep(quietFor)
		_, err = c.Next(t.Context()) // it counts as Background
		require.NoError(t, err)
		assert.Equal(t, 2, strings.Count(log.String(), "IDs come from the fallback"), "%s", &log)

		failing = errors.New("no node number")
		_, err = c.Next(t.Context())
		assert.ErrorIs(t, err, failing)
		assert.ErrorIs(t, c.NextN(t.Context(), ids), failing)
		assert.Equal(t, uint64(5), c.Stats().Fallbacks)
		_, err = c.Number(t.Context(), "orders")
		assert.ErrorIs(t, err, ErrUnavailable)
	})
}
