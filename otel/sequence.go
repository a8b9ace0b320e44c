package oteltickflake

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/tickflake/tickflake/sequence"
)

// ObserveSequence reports the [sequence.Stats] of a sequence at each collection of the
// metrics, with its name as the attribute tickflake.sequence. It never waits for the store,
// and a number costs no more than before. When the Sequence is closed, its counters are still
// reported, until Unregister; all else is not.
//
// Observe a Sequence once, or Unregister before doing so again: two reports with the same
// attributes add up to double counters. Two Sequences of one name in one process, such as
// those of two stores, need [WithNamespace] or [WithAttributes].
//
// Each Sequence is 15 series: see [ObserveSequences] for more than a few.
//
// The error says that seq is nil, or is one of the provider.
func ObserveSequence(seq *sequence.Sequence, options ...Option) (metric.Registration, error) {
	if seq == nil {
		return nil, fmt.Errorf("oteltickflake: ObserveSequence: sequence %w: give one that sequence.Open returned", errNil)
	}
	s, err := ObserveSequences(1, options...)
	if err != nil {
		return nil, err
	}
	s.Add(seq)
	return s.registration, nil
}

// Others is the value of the attribute tickflake.sequence for the sequences of [Sequences] that
// have no series of their own. No sequence has this name.
const Others = "(others)"

// Sequences reports many sequences. Make one with [ObserveSequences]. Its methods are safe for
// concurrent use.
type Sequences struct {
	own          int
	config       config
	others       metric.MeasurementOption
	registration metric.Registration
	instruments  sequenceInstruments

	mu    sync.Mutex // held during a collection
	named map[*sequence.Sequence]metric.MeasurementOption
	rest  map[*sequence.Sequence]struct{}
	ended sequence.Stats // the counters of sequences that were of the rest, so that no sum falls
	some  bool           // the rest has, or had, a sequence
}

// ObserveSequences returns a report of the sequences that are added to it. The first of them, as
// many as own says, are reported as [ObserveSequence] does. The others are added up, with
// [Others] for the name: their counters, and their rate, reserved and gap_bound; there is no step,
// last, left and utilization of several sequences. A sequence that is one of the others stays one.
//
// The limit of the SDK, sdkmetric.WithCardinalityLimit, holds for all metrics of a provider,
// reports the gauge of any one sequence for those beyond it, and its counters fall when one is
// removed.
//
// The error is one of the provider.
func ObserveSequences(own int, options ...Option) (*Sequences, error) {
	c := configure(options)
	m := newMeter(c, nil)
	s := &Sequences{
		own: own, config: c, others: c.set(SequenceKey.String(Others)), instruments: newSequenceInstruments(m),
		named: make(map[*sequence.Sequence]metric.MeasurementOption), rest: make(map[*sequence.Sequence]struct{}),
	}
	var err error
	s.registration, err = m.register(s.observe)
	return s, err
}

// Add reports a sequence until remove is called. It waits for a collection that runs.
func (s *Sequences) Add(seq *sequence.Sequence) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.named) < s.own {
		s.named[seq] = s.config.set(SequenceKey.String(seq.Name()))
	} else {
		s.rest[seq], s.some = struct{}{}, true
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.named, seq)
		if _, ok := s.rest[seq]; ok {
			delete(s.rest, seq)
			addCounters(&s.ended, seq.Stats())
		}
	}
}

// Unregister ends the reports. It closes no sequence.
func (s *Sequences) Unregister() error { return s.registration.Unregister() }

func (s *Sequences) observe(o metric.Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &s.instruments
	for seq, set := range s.named {
		definition, stats := seq.Definition(), seq.Stats()
		i.counters(o, stats, set)
		if errors.Is(seq.Err(), sequence.ErrClosed) {
			continue
		}
		i.sums(o, stats, set)
		o.ObserveInt64(i.step, stats.Step, set)
		o.ObserveInt64(i.last, stats.Last, set)
		o.ObserveInt64(i.left, stats.Left, set)
		o.ObserveFloat64(i.utilization, share(definition, stats), set)
	}
	if !s.some {
		return
	}
	sum := s.ended
	for seq := range s.rest {
		stats := seq.Stats()
		addCounters(&sum, stats)
		if !errors.Is(seq.Err(), sequence.ErrClosed) {
			sum.Rate += stats.Rate
			sum.Reserved += stats.Reserved
			sum.GapBound += stats.GapBound
		}
	}
	i.counters(o, sum, s.others)
	i.sums(o, sum, s.others)
}

// addCounters adds the counters of stats to those of sum.
func addCounters(sum *sequence.Stats, stats sequence.Stats) {
	sum.Issued += stats.Issued
	sum.Refills += stats.Refills
	sum.Waited += stats.Waited
	sum.Starved += stats.Starved
	sum.Lost += stats.Lost
	sum.Conflicts += stats.Conflicts
	sum.Failures += stats.Failures
	sum.WentBack += stats.WentBack
}

// sequenceInstruments are the instruments of sequences.
type sequenceInstruments struct {
	issued, refills, starved, lost, conflicts, failures, wentBack metric.Int64ObservableCounter
	refillTime                                                    metric.Float64ObservableCounter
	rate, utilization                                             metric.Float64ObservableGauge
	step, reserved, gapBound, last, left                          metric.Int64ObservableGauge
}

func newSequenceInstruments(m *meter) sequenceInstruments {
	return sequenceInstruments{
		issued:      m.counter("tickflake.sequence.issued", "{number}", "Numbers issued."),
		refills:     m.counter("tickflake.sequence.refills", "{refill}", "Writes that granted numbers to the process."),
		refillTime:  m.total("tickflake.sequence.refill_time", "Time that refills waited for the store, added up."),
		starved:     m.counter("tickflake.sequence.starved", "{call}", "Calls that waited for the store; none in ordered mode, where every call does."),
		lost:        m.counter("tickflake.sequence.lost", "{number}", "Numbers that were granted to the process and will never be issued."),
		conflicts:   m.counter("tickflake.sequence.conflicts", "{conflict}", "Writes that another process's write preceded."),
		failures:    m.counter("tickflake.sequence.failures", "{failure}", "Operations of the store that failed."),
		wentBack:    m.counter("tickflake.sequence.store_went_back", "{time}", "Times that the store had lost acknowledged writes."),
		rate:        m.gauge("tickflake.sequence.rate", "{number}/s", "Numbers per second that the process needs."),
		step:        m.number("tickflake.sequence.step", "{number}", "Numbers that the next refill reserves; 0 in ordered mode."),
		reserved:    m.number("tickflake.sequence.reserved", "{number}", "Numbers that are granted to the process and not issued."),
		gapBound:    m.number("tickflake.sequence.gap_bound", "{number}", "The most numbers that a crash of the process can lose."),
		last:        m.number("tickflake.sequence.last", "{number}", "The highest number granted to any process, as far as this one knows."),
		left:        m.number("tickflake.sequence.left", "{number}", "Numbers above the last, up to the maximum."),
		utilization: m.gauge("tickflake.sequence.utilization", "1", "The share of all numbers that is granted, from 0 to 1."),
	}
}

// counters reports the counters of a sequence, or of several.
func (i *sequenceInstruments) counters(o metric.Observer, s sequence.Stats, set metric.MeasurementOption) {
	o.ObserveInt64(i.issued, count(s.Issued), set)
	o.ObserveInt64(i.refills, count(s.Refills), set)
	o.ObserveFloat64(i.refillTime, s.Waited.Seconds(), set)
	o.ObserveInt64(i.starved, count(s.Starved), set)
	o.ObserveInt64(i.lost, count(s.Lost), set)
	o.ObserveInt64(i.conflicts, count(s.Conflicts), set)
	o.ObserveInt64(i.failures, count(s.Failures), set)
	o.ObserveInt64(i.wentBack, count(s.WentBack), set)
}

// sums reports the gauges that can be added up.
func (i *sequenceInstruments) sums(o metric.Observer, s sequence.Stats, set metric.MeasurementOption) {
	o.ObserveFloat64(i.rate, s.Rate, set)
	o.ObserveInt64(i.reserved, s.Reserved, set)
	o.ObserveInt64(i.gapBound, s.GapBound, set)
}

// share returns the share of a sequence's numbers that is granted: of those up to the maximum,
// those that are not left. A sequence has at most 2⁶² numbers.
func share(d sequence.Definition, s sequence.Stats) float64 {
	all := min(float64((d.Max-d.First())/d.Stride.By())+1, 1<<62)
	return max(0, 1-float64(s.Left)/all) // the maximum may have been raised after d was read
}
