package oteltickflake

import (
	"errors"
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
// The error is one of the provider.
func ObserveSequence(seq *sequence.Sequence, options ...Option) (metric.Registration, error) {
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
	metrics      *table[numbers]

	mu    sync.Mutex // held during a collection
	named map[*sequence.Sequence]metric.MeasurementOption
	rest  map[*sequence.Sequence]struct{}
	ended sequence.Stats // the counters of sequences that were of the rest, so that no sum falls
	some  bool           // the rest has, or had, a sequence
}

// ObserveSequences returns a report of the sequences that are added to it. The first ones, own in all, are reported
// as [ObserveSequence] does. The rest are added up, with [Others] for the name: their counters, and their rate,
// reserved and gap_bound; step, last, left and utilization are not reported for them. A sequence that is one of
// the others stays one.
//
// The SDK's own limit, sdkmetric.WithCardinalityLimit, is no substitute: it holds for all metrics of a
// provider, reports for all sequences beyond it the gauge of one of them, and its counters fall when a sequence
// is removed.
//
// The error is one of the provider.
func ObserveSequences(own int, options ...Option) (*Sequences, error) {
	c := configure(options)
	m := c.meter()
	t, err := newTable(m, sequenceMetrics)
	if err != nil {
		return nil, err
	}
	s := &Sequences{
		own: own, config: c, others: c.set(SequenceKey.String(Others)), metrics: t,
		named: make(map[*sequence.Sequence]metric.MeasurementOption), rest: make(map[*sequence.Sequence]struct{}),
	}
	s.registration, err = register(m, s.observe, t.instruments...)
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
			add(&s.ended, seq.Stats(), false)
		}
	}
}

// Unregister ends the reports. It closes no sequence.
func (s *Sequences) Unregister() error { return s.registration.Unregister() }

func (s *Sequences) observe(o metric.Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for seq, set := range s.named {
		most := single
		if errors.Is(seq.Err(), sequence.ErrClosed) {
			most = counter
		}
		definition, stats := seq.Definition(), seq.Stats()
		s.metrics.observe(o, set, numbers{stats, share(definition, stats)}, most)
	}
	if !s.some {
		return
	}
	sum := s.ended
	for seq := range s.rest {
		add(&sum, seq.Stats(), !errors.Is(seq.Err(), sequence.ErrClosed))
	}
	s.metrics.observe(o, s.others, numbers{Stats: sum}, gauge)
}

// add adds the counters of stats to those of sum, and its gauges if it is open.
func add(sum *sequence.Stats, stats sequence.Stats, open bool) {
	sum.Issued += stats.Issued
	sum.Refills += stats.Refills
	sum.Waited += stats.Waited
	sum.Starved += stats.Starved
	sum.Lost += stats.Lost
	sum.Conflicts += stats.Conflicts
	sum.Failures += stats.Failures
	sum.WentBack += stats.WentBack
	sum.Copies += stats.Copies
	if open {
		sum.Rate += stats.Rate
		sum.Reserved += stats.Reserved
		sum.GapBound += stats.GapBound
	}
}

// numbers is the state of a sequence, or of several.
type numbers struct {
	sequence.Stats
	utilization float64
}

var sequenceMetrics = []row[numbers]{
	{counter, "tickflake.sequence.issued", "{number}", "Numbers issued.", func(s numbers) any { return s.Issued }},
	{counter, "tickflake.sequence.refills", "{refill}", "Writes that granted numbers to the process.", func(s numbers) any { return s.Refills }},
	{counter, "tickflake.sequence.refill_time", "s", "Time that refills waited for the store, added up.", func(s numbers) any { return s.Waited }},
	{counter, "tickflake.sequence.starved", "{call}", "Calls that waited for the store; not in ordered mode, where all do.", func(s numbers) any { return s.Starved }},
	{counter, "tickflake.sequence.lost", "{number}", "Numbers that were granted and will never be issued.", func(s numbers) any { return s.Lost }},
	{counter, "tickflake.sequence.conflicts", "{conflict}", "Writes that another process preceded.", func(s numbers) any { return s.Conflicts }},
	{counter, "tickflake.sequence.failures", "{failure}", "Operations of the store that failed.", func(s numbers) any { return s.Failures }},
	{counter, "tickflake.sequence.store_went_back", "{time}", "Times that the store had lost writes: numbers may have come twice.", func(s numbers) any { return s.WentBack }},
	{counter, "tickflake.sequence.copies", "{time}", "Times that the process found its memory to be a copy.", func(s numbers) any { return s.Copies }},
	{gauge, "tickflake.sequence.rate", "{number}/s", "Numbers per second that the process needs; it comes down slowly.", func(s numbers) any { return s.Rate }},
	{single, "tickflake.sequence.step", "{number}", "Numbers that the next refill reserves; 0 in ordered mode.", func(s numbers) any { return s.Step }},
	{gauge, "tickflake.sequence.reserved", "{number}", "Numbers granted to the process and not issued yet.", func(s numbers) any { return s.Reserved }},
	{gauge, "tickflake.sequence.gap_bound", "{number}", "The most numbers that a crash can lose; 0 in ordered mode.", func(s numbers) any { return s.GapBound }},
	{single, "tickflake.sequence.last", "{number}", "The highest number granted to any process that this one knows of.", func(s numbers) any { return s.Last }},
	{single, "tickflake.sequence.left", "{number}", "Numbers above the last, up to the maximum.", func(s numbers) any { return s.Left }},
	{single, "tickflake.sequence.utilization", "1", "The part of all numbers that is granted, from 0 to 1.", func(s numbers) any { return s.utilization }},
}

// share returns the share of a sequence's numbers that is granted: of those up to the maximum,
// those that are not left. A sequence has at most 2⁶² numbers.
func share(d sequence.Definition, s sequence.Stats) float64 {
	all := min(float64((d.Max-d.First())/d.Stride.By())+1, 1<<62)
	return max(0, 1-float64(s.Left)/all) // the maximum may have been raised after d was read
}
