package sequence_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestTurns has three processes under load on one sequence: each gets its share, and none
// waits for long.
func TestTurns(t *testing.T) {
	for _, d := range []sequence.Definition{{Mode: sequence.Ordered}, {MinStep: 1, MaxStep: 1}} {
		t.Run(d.Mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := storetest.NewMemory()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				const processes = 3
				var writes [processes]int
				var longest [processes]time.Duration
				var wg sync.WaitGroup
				for i := range processes {
					store := shared.Client()
					store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
						time.Sleep(2*time.Millisecond + rand.N(time.Millisecond))
						return storetest.None
					}
					s := open(t, store, "orders", d)
					wg.Go(func() {
						for {
							began := time.Now()
							if _, err := s.Next(ctx); err != nil {
								break
							}
							writes[i]++
							longest[i] = max(longest[i], time.Since(began))
						}
						require.NoError(t, s.Close())
					})
				}
				wg.Wait()
				t.Log(writes, longest)
				for i := range processes {
					total := writes[0] + writes[1] + writes[2]
					assert.Greater(t, writes[i], total/processes/2)
					assert.Less(t, longest[i], 300*time.Millisecond, "without turns it is 500 ms")
				}
			})
		})
	}
}
