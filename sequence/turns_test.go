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

// TestTurns has three processes under load on one sequence: each gets its share, and few
// of its calls wait for long.
func TestTurns(t *testing.T) {
	for _, d := range []sequence.Definition{{Mode: sequence.Ordered}, {MinStep: 1, MaxStep: 1}} {
		t.Run(d.Mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := storetest.NewMemory()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				const processes = 3
				var writes [processes]int
				var long [processes]int
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
							if time.Since(began) > 50*time.Millisecond {
								long[i]++
							}
						}
						require.NoError(t, s.Close())
					})
				}
				wg.Wait()
				t.Log(writes, long)
				for i := range processes {
					assert.Greater(t, writes[i], (writes[0]+writes[1]+writes[2])/processes/2)
				}
				assert.Less(t, long[0]+long[1]+long[2], 90, "it is about 45, and without turns 140")
			})
		})
	}
}
