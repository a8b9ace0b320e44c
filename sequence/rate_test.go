package sequence_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
)

// TestSlowRate takes a number per second: the first ones, which come soon after each other
// and after Open, do not look like a high rate, for which thousands would be reserved.
func TestSlowRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow(time.Millisecond)(), "orders", sequence.Definition{Start: 1})
		for range 100 {
			next(t, s)
			time.Sleep(time.Second)
			stats := s.Stats()
			require.EqualValues(t, sequence.DefaultMinStep, stats.Step, "after %d", stats.Issued)
			require.LessOrEqual(t, stats.Reserved, int64(2*sequence.DefaultMinStep))
		}
		assert.InDelta(t, 1, s.Stats().Rate, 0.1)
		require.NoError(t, s.Close())
	})
}
