package pause_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/pause"
)

// Each pause is bounded on both sides, however many there are.
func TestBackoff(t *testing.T) {
	for _, b := range []pause.Backoff{{}, {First: time.Millisecond, Last: 50 * time.Millisecond}, {First: 1, Last: math.MaxInt64 / 2}, {First: 2, Last: 1}} {
		first, last := b.First, b.Last
		if first == 0 {
			first, last = 20*time.Millisecond, time.Second
		}
		sum := time.Duration(0)
		for i := range 200 {
			pause := b.Pause()
			assert.GreaterOrEqual(t, pause, min(first, last)/2, "%v, pause %d", b, i)
			assert.LessOrEqual(t, pause, last, "%v, pause %d", b, i)
			if i >= 100 { // the doubling has ended
				sum += pause / 100
			}
		}
		if last > time.Millisecond {
			assert.InDelta(t, 0.75, float64(sum)/float64(last), 0.1, "%v: half of a pause is random", b)
		}
	}
}
