package generator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// A call waits for a grant while the reason may pass, and ends at once when the store
// refuses, also in the middle of its wait.
func TestRefusalEndsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		away := errors.New("connection refused")
		refused := fmt.Errorf("%w: WRONGTYPE", stores.Refused.New("use another namespace"))
		g, w := granted(t, narrow(), monoclock.New(), window.Range{Node: 1, To: 1}, generator.WithStrategy(strategies.Reject()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for name, fix := range map[string]error{"refused": refused, "lost for good": lease.ErrLost} {
			w.Fail(away)
			begin, errs := time.Now(), make(chan error, 1)
			go func() {
				_, err := g.NextContext(ctx)
				errs <- err
			}()
			time.Sleep(time.Minute) // of the bubble
			synctest.Wait()
			require.Empty(t, errs, name)
			w.Fail(fix)
			err := <-errs
			assert.Equal(t, time.Minute, time.Since(begin))
			require.ErrorIs(t, err, fix)
			end, ok := errors.AsType[*generator.GrantError](err)
			require.True(t, ok)
			assert.Equal(t, stores.Refused, stores.KindOf(end))
			assert.Equal(t, time.Minute, end.Waited)

			_, err = g.NextContext(ctx)
			require.ErrorIs(t, err, fix, "the next one does not wait at all")
			assert.Equal(t, time.Minute, time.Since(begin))
		}
		w.Fail(stores.ErrWentBack)
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		_, err := g.NextContext(short)
		end, ok := errors.AsType[*generator.GrantError](err)
		require.True(t, ok)
		assert.Equal(t, stores.Loss, stores.KindOf(end))
		require.ErrorIs(t, err, context.DeadlineExceeded, "the keeper claims anew")
		w.Grant(window.Range{Node: 2, From: 1, To: math.MaxUint64}, math.MaxUint64)
		_, err = g.NextContext(ctx)
		require.NoError(t, err)
	})
}
