package speed

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slicesOf are slices of so many calls each, whose latencies are 1, 2, 3 … µs, times
// the number of the slice.
func slicesOf(n, calls int) []*hdrhistogram.PackedHistogram {
	r := newRecorder()
	var slices []*hdrhistogram.PackedHistogram
	for i := range n {
		for c := range calls {
			r.record(time.Duration((i+1)*(c+1)) * time.Microsecond)
		}
		slices = append(slices, r.take())
	}
	return slices
}

func TestQuantilesOfASliceThatHasEnough(t *testing.T) {
	got := quantiles[2].of(slicesOf(4, 1000)) // p99, of which 10 are beyond
	require.Len(t, got, 4)
	for i, us := range got {
		assert.InEpsilon(t, 990*(i+1), us, 0.002)
	}
}

func TestQuantilesOfSlicesTogether(t *testing.T) {
	got := quantiles[2].of(slicesOf(4, 300)) // of which 3 are beyond in each, 12 in all
	assert.Len(t, got, 2)
	assert.Less(t, got[0], got[1])

	got = quantiles[2].of(slicesOf(4, 30)) // 1 in all
	assert.Len(t, got, 1)

	assert.Empty(t, quantiles[2].of(slicesOf(3, 30)))
	assert.Equal(t, "fewer than 100 calls", quantiles[2].cell(slicesOf(3, 30)).Text)
	assert.Zero(t, quantiles[2].cell(nil), "nothing was measured")
}

func TestNoSliceIsLeftOut(t *testing.T) {
	slices := slicesOf(7, 100)
	got := quantiles[2].of(slices)
	require.Len(t, got, 1)
	assert.Equal(t, int64(700), merge(slices).TotalCount())
	assert.Equal(t, []float64{microseconds(merge(slices).ValueAtQuantile(99))}, got)
	assert.InEpsilon(t, 700, longestOf(slices).Samples[0], 0.002)
	assert.Zero(t, longestOf(nil))
}

func TestLatenciesBeyondTheRangeAreNotLost(t *testing.T) {
	r := newRecorder()
	r.record(time.Hour)
	r.record(-1)
	slice := r.take()
	assert.EqualValues(t, 2, slice.TotalCount())
	assert.InEpsilon(t, longest, slice.Max(), 0.002)
	assert.Zero(t, r.take().TotalCount(), "a slice begins empty")
}
