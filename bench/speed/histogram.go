package speed

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tickflake/tickflake/bench/results"
)

// A histogram holds latencies from 1 ns to a minute with three significant digits.
const (
	shortest = 1
	longest  = int64(time.Minute)
	digits   = 3
)

// recorder records the latencies of one slice after the other.
type recorder struct {
	slice *hdrhistogram.Histogram
}

func newRecorder() recorder {
	return recorder{hdrhistogram.New(shortest, longest, digits)}
}

// record records a latency; one beyond a minute counts as a minute.
func (r recorder) record(late time.Duration) {
	// The error is that of a value outside the range.
	_ = r.slice.RecordValue(min(max(int64(late), 0), longest))
}

// take returns the recorded latencies in little memory, and begins the next slice.
func (r recorder) take() *hdrhistogram.PackedHistogram {
	packed := hdrhistogram.NewPacked(shortest, longest, digits)
	packed.MergeFrom(r.slice)
	r.slice.Reset()
	return packed
}

// quantile is a share of the calls, with the column that shows it.
type quantile struct {
	column, title string
	q             float64
}

var quantiles = []quantile{
	{"p50", "p50", 0.5},
	{"p90", "p90", 0.9},
	{"p99", "p99", 0.99},
	{"p999", "p99.9", 0.999},
	{"p9999", "p99.99", 0.9999},
}

// oneIn is the quantile's place in the chart: one call in so many is slower.
func (q quantile) oneIn() float64 { return float64(int(1/(1-q.q) + 0.5)) }

// beyond is how many calls must be slower than a quantile to make a sample of it.
const beyond = 5

// of returns samples of the quantile, in microseconds. Each is of as many consecutive
// slices as together have enough calls beyond the quantile, or of all slices if they have
// not.
func (q quantile) of(slices []*hdrhistogram.PackedHistogram) []float64 {
	calls := int64(0)
	for _, s := range slices {
		calls += s.TotalCount()
	}
	if float64(calls) < q.oneIn() {
		return nil
	}
	groups := min(max(int(float64(calls)/q.oneIn()/beyond), 1), len(slices))
	var samples []float64
	for i := range groups {
		merged := merge(slices[i*len(slices)/groups : (i+1)*len(slices)/groups])
		samples = append(samples, microseconds(merged.ValueAtQuantile(100*q.q)))
	}
	return samples
}

// cell shows the quantile.
func (q quantile) cell(slices []*hdrhistogram.PackedHistogram) results.Cell {
	samples := q.of(slices)
	if len(samples) == 0 && len(slices) > 0 {
		return results.Cell{Text: "fewer than " + results.Figure(q.oneIn()) + " calls"}
	}
	return results.Cell{Samples: samples}
}

// longestOf is the longest latency of all, in microseconds.
func longestOf(slices []*hdrhistogram.PackedHistogram) results.Cell {
	if len(slices) == 0 {
		return results.Cell{}
	}
	return results.Cell{Samples: []float64{microseconds(merge(slices).Max())}}
}

func merge(slices []*hdrhistogram.PackedHistogram) *hdrhistogram.Histogram {
	all := hdrhistogram.New(shortest, longest, digits)
	for _, s := range slices {
		s.MergeInto(all)
	}
	return all
}

func microseconds(ns int64) float64 { return float64(ns) / 1e3 }
