package sequence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Callers who ask again as soon as they have a number are served by one write, and not half
// of them by every other one.
func TestCallersAreServedTogether(t *testing.T) {
	for _, callers := range []int{2, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, slow(time.Millisecond)(), "orders", sequence.Definition{Mode: sequence.Ordered})
			const each = 50
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						_, err := s.Next(t.Context())
						assert.NoError(t, err)
					}
				})
			}
			group.Wait()
			assert.Less(t, s.Stats().Refills, uint64(each*3/2), "writes for %d callers, who need %d", callers, each)
		})
	}
}

// Calls without a deadline each wait for the timeout, whenever they began, and also behind
// calls that have a deadline.
func TestEachCallHasItsTimeout(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 2 * time.Second
			store := storetest.NewMemory()
			hangs := false
			store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
				if hangs {
					<-ctx.Done()
				}
				return storetest.None
			}
			s := open(t, store, "orders", sequence.Definition{Mode: mode}, sequence.WithTimeout(timeout))
			hangs = true
			var group sync.WaitGroup
			for i := range 10 {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
					ctx, want, wait := t.Context(), error(sequence.ErrTimeout), timeout
					if i%4 == 0 {
						longer, cancel := context.WithTimeout(ctx, 5*time.Second)
						defer cancel()
						ctx, want, wait = longer, context.DeadlineExceeded, 5*time.Second
					}
					began := time.Now()
					_, err := s.Next(ctx)
					assert.ErrorIs(t, err, want)
					assert.Equal(t, wait, time.Since(began), "call %d", i)
				})
			}
			group.Wait()
			_ = s.Close() // it tells that the store hangs
		})
	}
}
