package sequence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
)

// TestRestoredUnderLoad has calls that wait all the time: Restored and Poll get their turn.
func TestRestoredUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(5*time.Millisecond)(), "orders", sequence.Definition{Mode: sequence.Ordered})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				for ctx.Err() == nil {
					s.Next(ctx)
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		for _, do := range []func(context.Context) error{s.Restored, s.Poll} {
			within, end := context.WithTimeout(ctx, time.Second)
			assert.NoError(t, do(within))
			end()
		}
		cancel()
		wg.Wait()
		require.NoError(t, s.Close())
	})
}
