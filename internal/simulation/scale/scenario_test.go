package scale

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// plans are the fleets of the page, a column each.
var plans = []plan{
	{nodes: 1 << 10, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 10, window: 5 * time.Minute, serves: 303, seed: 1},
}

// plan is a fleet, a store for it, and what happens to them.
type plan struct {
	nodes  int
	window time.Duration
	serves int64 // operations per second of the store, if they are not those of capacity
	seed   uint64
	brief  bool // ends after the first outage
}

// rest is the number of writes per second at rest: three per window and process.
func (p plan) rest() float64 { return 3 * float64(p.processes()) / p.window.Seconds() }

// capacity is how many operations per second the store serves: three times the writes at rest.
func (p plan) capacity() int64 {
	if p.serves > 0 {
		return p.serves
	}
	return int64(3 * p.rest())
}

// processes is how many processes there are: 99% of the node numbers.
func (p plan) processes() int { return p.nodes - (p.nodes+99)/100 }

// The times of a plan, in units of a thirtieth of a window. All processes but the last of a
// hundred start at once; later the last ones do, and then 99% of the numbers are taken. At the
// end all processes are restarted, one of a hundred at a time.
const (
	lastStart = 45 // the last 1% start
	restFrom  = 60
	restTo    = 70 // and the store refuses for ten minutes
	after     = 20 // and works for so long, and then hangs for ten minutes
	batches   = 100
)

const outageLength = 10 * time.Minute

func (p plan) unit() int64 { return int64(p.window) / 30 }

func (p plan) outages() []outage {
	first := outage{from: restTo * p.unit(), to: restTo*p.unit() + int64(outageLength)}
	second := outage{from: first.to + after*p.unit(), hangs: true}
	second.to = second.from + int64(outageLength)
	return []outage{first, second}
}

// restart is when the rolling restart begins.
func (p plan) restart() int64 { return p.outages()[1].to + after*p.unit() }

// first is how many processes start at once.
func (p plan) first() int { return p.processes() - p.processes()/100 }

// batch is the processes of one batch of the rolling restart.
func (p plan) batch(i int) (from, to int) {
	return p.processes() * i / batches, p.processes() * (i + 1) / batches
}

// down is how long a process is away in a rolling restart, in units.
const down = 1

// figures is what a run shows.
type figures struct {
	Rest         float64 // writes per second
	Start        float64 // seconds until all of the first 99% issue
	Trips        int32   // median round trips of a claim with 99% of the numbers taken
	TripsMost    int32   // that 99 of 100 claims do not exceed
	Last         float64 // seconds until all of the last 1% issue
	AfterPeak    [2]float64
	AfterSeconds [2]float64 // until all issue after an outage, or infinite if some do not
	RestartPeak  float64
	Restart      float64 // seconds from the end of the last batch until all issue
}

// carryOut runs a plan, and returns what the meter has counted.
func carryOut(p plan, s *store, d *fleet) figures {
	m := &s.meter
	unit, second := p.unit(), float64(time.Second)
	var f figures
	for i := range p.first() {
		d.start(int32(i))
	}
	d.run(lastStart * unit)
	f.Start = float64(m.joined) / second

	for i := p.first(); i < p.processes(); i++ {
		d.start(int32(i))
	}
	d.run(restFrom * unit)
	f.Last = float64(m.joined-lastStart*unit) / second
	f.Trips, f.TripsMost = tripsOf(m.claimed[p.first():])

	d.run(restTo * unit)
	f.Rest, _ = m.rate(restFrom*unit, restTo*unit)

	for i, o := range p.outages() {
		d.run(o.to + after*unit)
		_, f.AfterPeak[i] = m.rate(o.to, o.to+after*unit)
		f.AfterSeconds[i] = float64(m.lastIn[i]-o.to) / second
		if m.cameBack[i] < p.processes() {
			f.AfterSeconds[i] = math.Inf(1)
		}
		if p.brief {
			return f
		}
	}

	begin := p.restart()
	for i := range batches {
		from, to := p.batch(i)
		d.run(begin + int64(i)*unit)
		for k := from; k < to; k++ {
			d.stop(int32(k))
		}
		d.run(begin + int64(i+down)*unit)
		for k := from; k < to; k++ {
			d.start(int32(k))
		}
	}
	end := begin + (batches+30)*unit
	d.run(end)
	_, f.RestartPeak = m.rate(begin, end)
	f.Restart = float64(m.joined-begin-batches*unit) / second
	return f
}

// tripsOf is the median, and the number that 99 of 100 do not exceed. A process without a claim
// counts as the most.
func tripsOf(claimed []int32) (median, most int32) {
	sorted := slices.Clone(claimed)
	for i := range sorted {
		if sorted[i] == 0 {
			sorted[i] = 1 << 30
		}
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2], sorted[len(sorted)*99/100]
}

// rows are the names of what column returns.
var rows = []string{
	"node numbers, window",
	"processes",
	"the store serves, operations per second",
	"writes per second at rest",
	"99% of the processes start at once: all issue after",
	"the last 1% start at once, and 99% of the numbers are taken then: all issue after",
	"round trips of their claims: median, 99 of 100",
	"after 10 minutes of refused requests: most writes in a second, × the rate at rest",
	"all issue again after",
	"after 10 minutes without answers: most writes in a second, × the rate at rest",
	"all issue again after",
	"rolling restart, 1% at a time: most writes in a second, × the rate at rest",
	"all issue after the last batch after",
}

// column has the figures of a plan, one for each of rows.
func column(p plan, f figures) []string {
	times := func(peak float64) string { return fmt.Sprintf("%s, %.2f×", count(peak), peak/f.Rest) }
	return []string{
		fmt.Sprintf("%s, %s", count(float64(p.nodes)), p.window),
		count(float64(p.processes())),
		count(float64(p.capacity())),
		count(f.Rest),
		fmt.Sprintf("%.1f s", f.Start),
		fmt.Sprintf("%.1f s", f.Last),
		fmt.Sprintf("%d, %d", f.Trips, f.TripsMost),
		times(f.AfterPeak[0]), seconds(f.AfterSeconds[0]),
		times(f.AfterPeak[1]), seconds(f.AfterSeconds[1]),
		times(f.RestartPeak), fmt.Sprintf("%.1f s", f.Restart),
	}
}

func seconds(x float64) string {
	if math.IsInf(x, 1) {
		return "not within two thirds of a window"
	}
	return fmt.Sprintf("%.1f s", x)
}

// count is a number with commas, and one decimal if it is small.
func count(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	text := strconv.FormatInt(int64(x+0.5), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
