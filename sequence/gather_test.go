package sequence_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/sequence"
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
