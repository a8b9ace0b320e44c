package generator_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/strategies"
)

// Callers on one processor ask for more than the ceiling, under a lease with windows from
// the smallest on. There are three quarters as many callers as IDs in the strategy's wait,
// so none may give up, and IDs come at the ceiling.
func TestNoCallStarvesAtTheCeiling(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const (
		patience = 40 * time.Millisecond
		callers  = 3 * 4 * int(patience/time.Millisecond) / 4
		each     = 8
	)
	for _, text := range []string{"wait:40ms", "borrow:2ms,wait:42ms", "exhausted=wait:40ms/behind=reject"} {
		strategy, err := strategies.Parse(text)
		require.NoError(t, err)
		for _, ticks := range []int64{6, 12, 100} {
			t.Run(fmt.Sprint(text, " window of ", ticks), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g, w := granted(t, narrow(), monoclock.New(), grant(narrow(), 1, 0, ticks), generator.WithStrategy(strategy))
					ctx, cancel := context.WithCancel(t.Context())
					var keeper, all sync.WaitGroup
					keeper.Go(func() { // when a third of the window is used, it extends the grant
						for ctx.Err() == nil {
							next := grant(narrow(), 1, 0, time.Since(noon).Milliseconds()+ticks)
							w.Grant(next, next.To-uint64(2*ticks/3))
							select {
							case <-w.More():
							case <-ctx.Done():
							}
						}
					})
					before := time.Now()
					for range callers {
						all.Go(func() {
							for range each {
								began := time.Now()
								_, err := g.Next()
								assert.NoError(t, err)
								assert.LessOrEqual(t, time.Since(began), patience)
							}
						})
					}
					all.Wait()
					assert.LessOrEqual(t, time.Since(before), time.Duration(callers*each/4)*time.Millisecond)
					cancel()
					keeper.Wait()
				})
			})
		}
	}
}
