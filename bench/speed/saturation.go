package speed

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tickflake/tickflake/bench/cases"
	"github.com/tickflake/tickflake/bench/results"
)

// saturation is the share of a round's time in which goroutines ask for more IDs than the
// default layout has, so that calls wait for slots.
const saturation = 0.265

// million is the quantile that one call in a million exceeds.
var million = quantile{"p999999", "slowest in a million", 0.999999}

// crowd has the records, by slice, of goroutines that ask for more IDs than the ceiling.
type crowd struct {
	opened
	processors int
	loops      []cases.Loop
	recorders  []recorder
	calls      int // of a slice
	slices     []*hdrhistogram.PackedHistogram
	reached    []float64 // IDs per second, by slice
}

// crowds returns a crowd for each number of goroutines and processors.
func crowds(next opened, budget time.Duration) []*crowd {
	sizes, processors := []int{1, 2, 64}, []int{1, 2}
	slice := time.Duration(float64(budget) * saturation / float64(latencyRounds*len(sizes)*len(processors)))
	var list []*crowd
	for _, p := range processors {
		for _, n := range sizes {
			c := &crowd{opened: next, processors: p, calls: max(int(float64(slice)/next.Limit.NanosecondsPerID()), n)}
			if next.err == nil {
				c.loops = next.source.Loops(n)
			}
			for range n {
				c.recorders = append(c.recorders, newRecorder())
			}
			list = append(list, c)
		}
	}
	return list
}

// name is the name of the row.
func (c *crowd) name() string {
	plural := func(n int, what string) string {
		if n != 1 {
			what += "s"
		}
		return fmt.Sprint(n, " ", what)
	}
	return plural(len(c.recorders), "goroutine") + " on " + plural(c.processors, "processor")
}

// runSlice makes a slice's calls, once the tick that it finds is used up.
func (c *crowd) runSlice() {
	if c.err != nil {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.processors))
	runtime.GC()
	if c.err = c.loops[0](c.Limit.IDs); c.err != nil {
		return
	}
	began := time.Now()
	errs := make([]error, len(c.loops))
	var all sync.WaitGroup
	for i, issue := range c.loops {
		all.Go(func() {
			for range c.calls / len(c.loops) {
				before := time.Now()
				if errs[i] = issue(1); errs[i] != nil {
					return
				}
				c.recorders[i].record(time.Since(before))
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			c.err = err
			return
		}
	}
	sum := hdrhistogram.NewPacked(shortest, longest, digits)
	for _, r := range c.recorders {
		sum.MergeFrom(r.slice)
		r.slice.Reset()
	}
	c.slices = append(c.slices, sum)
	c.reached = append(c.reached, float64(c.calls/len(c.loops)*len(c.loops))/took.Seconds())
}

// keep drops the slices after the first rounds.
func (c *crowd) keep(rounds int) {
	n := min(rounds, len(c.slices))
	c.slices, c.reached = c.slices[:n], c.reached[:n]
}

func saturationTable(list []*crowd) results.Table {
	t := results.Table{ID: "latency-ceiling", Title: "At the ceiling of the default layout: time of a call of Next, with its wait", RowName: "callers", Detail: true,
		Columns: []results.Column{
			{ID: million.column, Title: million.title, Unit: "µs", Better: results.Less},
			{ID: "longest", Title: "longest", Unit: "µs", Better: results.Less},
			{ID: "reached", Title: "reached", Unit: "IDs/s", Better: results.More},
		}}
	for _, c := range list {
		row := results.Row{Name: c.name(), Group: c.Group, Cells: []results.Cell{million.cell(c.slices), longestOf(c.slices), {Samples: c.reached}}}
		if len(c.slices) == 0 && c.err != nil {
			row.Cells = []results.Cell{{Text: "failed"}, {Text: "failed"}, {Text: "failed"}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
