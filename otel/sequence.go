package oteltickflake

import (
	"errors"
	"fmt"

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
// Each Sequence is a series of each metric. The meter provider of the SDK keeps 2000 per
// metric, unless it is told otherwise, and reports the rest as one.
//
// The error says that seq is nil, or is one of the provider.
func ObserveSequence(seq *sequence.Sequence, options ...Option) (metric.Registration, error) {
	if seq == nil {
		return nil, fmt.Errorf("oteltickflake: ObserveSequence: sequence %w: give one that sequence.Open returned", errNil)
	}
	c := configure(options)
	m := newMeter(c, c.set(SequenceKey.String(seq.Name())))
	return m.register(m.sequence(seq))
}

// sequence makes the instruments of a sequence and returns their callback.
func (m *meter) sequence(seq *sequence.Sequence) func(metric.Observer) {
	issued := m.counter("tickflake.sequence.issued", "{number}", "Numbers issued.")
	refills := m.counter("tickflake.sequence.refills", "{refill}", "Writes that granted numbers to the process.")
	refillTime := m.total("tickflake.sequence.refill_time", "Time that refills waited for the store, added up.")
	starved := m.counter("tickflake.sequence.starved", "{call}", "Calls that waited for the store; none in ordered mode, where every call does.")
	lost := m.counter("tickflake.sequence.lost", "{number}", "Numbers that were granted to the process and will never be issued.")
	conflicts := m.counter("tickflake.sequence.conflicts", "{conflict}", "Writes that another process's write preceded.")
	failures := m.counter("tickflake.sequence.failures", "{failure}", "Operations of the store that failed.")
	wentBack := m.counter("tickflake.sequence.store_went_back", "{time}", "Times that the store had lost acknowledged writes.")
	rate := m.gauge("tickflake.sequence.rate", "{number}/s", "Numbers per second that the process needs.")
	step := m.number("tickflake.sequence.step", "{number}", "Numbers that the next refill reserves; 0 in ordered mode.")
	reserved := m.number("tickflake.sequence.reserved", "{number}", "Numbers that are granted to the process and not issued.")
	gapBound := m.number("tickflake.sequence.gap_bound", "{number}", "The most numbers that a crash of the process can lose.")
	last := m.number("tickflake.sequence.last", "{number}", "The highest number granted to any process, as far as this one knows.")
	left := m.number("tickflake.sequence.left", "{number}", "Numbers above the last, up to the maximum.")
	utilization := m.gauge("tickflake.sequence.utilization", "1", "The share of all numbers that is granted, from 0 to 1.")
	return func(o metric.Observer) {
		definition, s := seq.Definition(), seq.Stats()
		o.ObserveInt64(issued, count(s.Issued), m.set)
		o.ObserveInt64(refills, count(s.Refills), m.set)
		o.ObserveFloat64(refillTime, s.Waited.Seconds(), m.set)
		o.ObserveInt64(starved, count(s.Starved), m.set)
		o.ObserveInt64(lost, count(s.Lost), m.set)
		o.ObserveInt64(conflicts, count(s.Conflicts), m.set)
		o.ObserveInt64(failures, count(s.Failures), m.set)
		o.ObserveInt64(wentBack, count(s.WentBack), m.set)
		if errors.Is(seq.Err(), sequence.ErrClosed) {
			return
		}
		o.ObserveFloat64(rate, s.Rate, m.set)
		o.ObserveInt64(step, s.Step, m.set)
		o.ObserveInt64(reserved, s.Reserved, m.set)
		o.ObserveInt64(gapBound, s.GapBound, m.set)
		o.ObserveInt64(last, s.Last, m.set)
		o.ObserveInt64(left, s.Left, m.set)
		o.ObserveFloat64(utilization, share(definition, s), m.set)
	}
}

// share returns the share of a sequence's numbers that is granted: of those up to the maximum,
// those that are not left. A sequence has at most 2⁶² numbers.
func share(d sequence.Definition, s sequence.Stats) float64 {
	all := min(float64((d.Max-d.First())/d.Stride.By())+1, 1<<62)
	return max(0, 1-float64(s.Left)/all) // the maximum may have been raised after d was read
}
