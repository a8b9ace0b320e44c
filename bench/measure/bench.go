package measure

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// Work is an operation that can be repeated.
type Work struct {
	Name string
	// Do does it n times.
	Do func(n int) error
	// Elsewhere does the same at other places in memory. The rounds take Do and these in
	// turn, from Do on.
	Elsewhere []func(n int) error
	// Unit divides n; 0 stands for 1.
	Unit int
	// LeadIn is the least number of unmeasured times before each measurement. They use
	// up what gathered while other works had their turn, such as the rest of a tick.
	LeadIn int
	// Base is what this work is compared with. It is measured next to each batch of the
	// work, before and after it in turn, and [Samples.Base] has what was measured. It is nil
	// if there is nothing to compare with.
	Base *Work
}

// Samples is what was measured of a [Work], with one sample per round.
type Samples struct {
	Wall   []float64 // nanoseconds, each time
	CPU    []float64 // nanoseconds of processor time, of all threads; empty if the system does not tell
	Allocs []float64 // allocations, each time
	Bytes  []float64 // allocated, each time
	// Disturbed says in which rounds the machine disturbed the batch, by the rule of [Watch].
	Disturbed []bool
	Base      *Samples // of [Work.Base]; nil if there is none
	Err       error    // why the samples end, if the work failed
}

// Bench measures works in batches that take about equally long.
type Bench struct {
	subjects []*subject
	meter    meter
}

// meter is the source of times.
type meter struct {
	now   func() time.Time
	cpu   func() (time.Duration, bool)
	watch func() (disturbed func() bool)
}

var realMeter = meter{time.Now, CPUTime, Watch}

type subject struct {
	Work
	batch   int           // times
	target  time.Duration // of a batch; 0 is any
	samples Samples
}

// most bounds a batch of work that takes no time.
const most = 1 << 26

// Interleave measures works side by side until run.Budget is used up, in least rounds or
// more. In each round every work does one batch of about the given time. The result has
// whole rounds only, so the samples of two works are pairs. A work that fails is left out
// from then on.
func Interleave(ctx context.Context, run *Run, batch time.Duration, least int, works []Work) []Samples {
	began := run.time()
	flat := slices.Clone(works)
	var pairs [][]int
	for i, w := range works {
		if w.Base != nil {
			pairs = append(pairs, []int{len(flat), i})
			flat = append(flat, *w.Base)
		}
	}
	b := NewBench(flat)
	names := make([]string, len(flat))
	for i, w := range flat {
		names[i] = w.Name
		run.tell(run.time().Sub(began), "warming up: "+w.Name)
		b.Calibrate(ctx, i, batch)
	}
	run.Rounds(ctx, began, least, names, b.Measure, pairs...)
	samples := b.Samples()
	for _, p := range pairs {
		samples[p[1]].Base = &samples[p[0]]
	}
	return samples[:len(works)]
}

// NewBench returns a Bench of works, whose batches are one [Work.Unit] each until
// [Bench.Calibrate] changes that.
func NewBench(works []Work) *Bench {
	b := &Bench{meter: realMeter}
	for _, w := range works {
		w.Unit = max(w.Unit, 1)
		b.subjects = append(b.subjects, &subject{Work: w, batch: w.Unit})
	}
	return b
}

// Calibrate warms a work up, and chooses its batch to take about the target time, or a
// Unit if that takes longer.
func (b *Bench) Calibrate(ctx context.Context, work int, target time.Duration) {
	s := b.subjects[work]
	s.target = target
	for ctx.Err() == nil {
		wall, _, err := b.batch(s)
		if s.samples.Err = err; err != nil {
			return
		}
		factor := s.factor(wall)
		s.lengthen(factor)
		if factor < 2 || s.batch > most {
			return
		}
	}
}

// factor is how many times as long a batch should be that took wall, up to 10.
func (s *subject) factor(wall time.Duration) float64 {
	if wall <= 0 {
		return 10
	}
	return min(10, float64(s.target)/float64(wall))
}

func (s *subject) lengthen(factor float64) {
	s.batch = max(1, int(float64(s.batch)*factor+0.5)/s.Unit) * s.Unit
}

// Measure measures a batch of one work. A batch that turns out far too short, because the
// machine was busy during Calibrate, is lengthened and measured again.
func (b *Bench) Measure(work int) {
	s := b.subjects[work]
	if s.samples.Err != nil {
		return
	}
	for {
		m := b.measure(s)
		if s.samples.Err = m.err; m.err != nil {
			return
		}
		if factor := s.factor(m.wall); s.target > 0 && factor > 4 && s.batch <= most {
			s.lengthen(factor)
			continue
		}
		s.keep(m)
		return
	}
}

// measured is the cost of one batch.
type measured struct {
	wall, cpu     time.Duration // cpu is below zero if the system does not tell
	allocs, bytes uint64        // lead-in included
	disturbed     bool
	err           error
}

func (b *Bench) measure(s *subject) (m measured) {
	// The garbage of other works is collected here, and not on this one's time.
	runtime.GC()
	disturbed := b.meter.watch()
	// The memory is read before the lead-in, because the batch must follow the lead-in
	// at once.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.wall, m.cpu, m.err = b.batch(s)
	runtime.ReadMemStats(&after)
	m.disturbed = disturbed()
	m.allocs, m.bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return m
}

// keep adds samples of the last batch.
func (s *subject) keep(m measured) {
	n := float64(s.batch)
	s.samples.Wall = append(s.samples.Wall, float64(m.wall)/n)
	if m.cpu >= 0 {
		s.samples.CPU = append(s.samples.CPU, float64(m.cpu)/n)
	}
	n += float64(s.leadIn())
	s.samples.Allocs = append(s.samples.Allocs, float64(m.allocs)/n)
	s.samples.Bytes = append(s.samples.Bytes, float64(m.bytes)/n)
	s.samples.Disturbed = append(s.samples.Disturbed, m.disturbed)
}

// batch does a batch after its lead-in.
func (b *Bench) batch(s *subject) (wall, cpu time.Duration, err error) {
	do := s.Do
	if place := len(s.samples.Wall) % (len(s.Elsewhere) + 1); place > 0 {
		do = s.Elsewhere[place-1]
	}
	if err := do(s.leadIn()); err != nil {
		return 0, 0, err
	}
	used, told := b.meter.cpu()
	begin := b.meter.now()
	err = do(s.batch)
	wall = b.meter.now().Sub(begin)
	if !told {
		return wall, -1, err
	}
	now, _ := b.meter.cpu()
	return wall, now - used, err
}

// leadIn is the number of unmeasured times before a batch: a sixteenth of it, to warm
// the caches, if the work does not ask for more.
func (s *subject) leadIn() int {
	n := max(s.LeadIn, s.batch/16)
	return (n + s.Unit - 1) / s.Unit * s.Unit
}

// Samples returns the samples in the order of the works. Works that have not failed have
// the same number.
func (b *Bench) Samples() []Samples {
	rounds := -1
	for _, s := range b.subjects {
		if n := len(s.samples.Wall); s.samples.Err == nil && (rounds < 0 || n < rounds) {
			rounds = n
		}
	}
	all := make([]Samples, len(b.subjects))
	for i, s := range b.subjects {
		all[i] = s.samples
		if s.samples.Err == nil {
			all[i] = s.samples.first(rounds)
		}
	}
	return all
}

// first returns the samples of the first rounds.
func (s Samples) first(rounds int) Samples {
	for _, of := range []*[]float64{&s.Wall, &s.CPU, &s.Allocs, &s.Bytes} {
		*of = (*of)[:min(rounds, len(*of))]
	}
	s.Disturbed = s.Disturbed[:min(rounds, len(s.Disturbed))]
	return s
}

// Ratios returns subject divided by base in each round that both have. A disturbance that
// lasts longer than a round cancels out.
func Ratios(subject, base []float64) []float64 {
	out := make([]float64, min(len(subject), len(base)))
	for i := range out {
		out[i] = subject[i] / base[i]
	}
	return out
}

// Each returns f of every sample.
func Each(samples []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(samples))
	for i, v := range samples {
		out[i] = f(v)
	}
	return out
}
