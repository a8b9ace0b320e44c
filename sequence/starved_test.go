package sequence_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
)

// At a rate that doubles every second, from one call per second to 1,048,576, and with 5 ms
// per write, at most one call in a million waits for the store. Calls are due at their time,
// so those that fall due while one waits are counted as well.
func TestFewCallsStarveWhileTheRateDoubles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(5*time.Millisecond)(), "orders", sequence.Definition{Start: 1})
		const seconds, tick = 21, 100 * time.Microsecond
		calls, starved := 0, 0
		began := time.Now()
		for second := range seconds {
			rate, from := 1<<second, began.Add(time.Duration(second)*time.Second)
			for done := 0; done < rate; {
				now := time.Now()
				for ; done < rate && from.Add(time.Duration(done)*time.Second/time.Duration(rate)).Before(now.Add(tick)); done++ {
					_, err := s.Next(t.Context())
					require.NoError(t, err)
					calls++
				}
				if waited := time.Since(now); waited > 0 { // time passes only while a call waits
					starved += max(1, int(waited*time.Duration(rate)/time.Second))
				}
				time.Sleep(tick)
			}
			time.Sleep(time.Until(from.Add(time.Second)))
		}
		require.Equal(t, 1<<seconds-1, calls)
		stats := s.Stats()
		t.Logf("%d of %d calls starved (Stats has %d), with %d refills", starved, calls, stats.Starved, stats.Refills)
		assert.LessOrEqual(t, starved, calls/1_000_000)
		assert.LessOrEqual(t, stats.Starved, uint64(starved))
	})
}
