package snowflake

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/tickflake/tickflake/internal/span"
)

// maxInstant is the last result of [Layout.End]: RFC 3339 has four digits for the year,
// and JSON and most databases accept no more.
var maxInstant = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)

// Capacity is the room that a layout has.
type Capacity struct {
	// IDsPerTick is the number of IDs that one node can issue in one tick.
	IDsPerTick int64
	// IDsPerSecond is the number of IDs that one node can issue in one second,
	// sustained.
	IDsPerSecond float64
	// Nodes is the number of nodes that can issue IDs at once.
	Nodes int64
	// Years is the length of the time field in years of 365.25 days, counted
	// from the epoch. Unlike Last it does not stop at the year 9999.
	Years float64
	// Last is the last valid instant, to the nanosecond: just before
	// [Layout.End].
	Last time.Time
}

// End returns the first instant after the time field, in UTC. It saturates at
// 9999-12-31T23:59:59.999999999Z, because RFC 3339 stops there; IDs with a later
// time are neither composed nor decoded. For an invalid layout it returns the
// zero time.
func (l Layout) End() time.Time {
	if l.Validate() != nil {
		return time.Time{}
	}
	return l.end()
}

// end is End for a layout that is known to be valid.
func (l Layout) end() time.Time {
	end, _ := l.tickTime(1 << l.TimeBits)
	return end
}

// Capacity returns the room that the layout has, and the zero Capacity for an invalid
// layout.
func (l Layout) Capacity() Capacity {
	if l.Validate() != nil {
		return Capacity{}
	}
	return Capacity{
		IDsPerTick:   l.maxSequence() + 1,
		IDsPerSecond: idsPerSecond(l.SequenceBits, l.Tick),
		Nodes:        l.MaxNode() + 1,
		Years:        fieldYears(l.TimeBits, l.Tick),
		Last:         l.end().Add(-1),
	}
}

// Min returns the smallest ID of the tick that contains t: node 0, sequence 0.
// The errors are those of [Layout.Compose].
func (l Layout) Min(t time.Time) (ID, error) { return l.Compose(t, 0, 0) }

// Max returns the largest ID of the tick that contains t. The errors are those
// of [Layout.Compose].
func (l Layout) Max(t time.Time) (ID, error) { return l.Compose(t, l.MaxNode(), l.maxSequence()) }

// Between turns a time range into an ID range for a database query. It returns
// the smallest and the largest ID, both inclusive, of all ticks that overlap
// the half-open range [from, to), ready for
//
//	SELECT ... WHERE id BETWEEN lo AND hi
//
// The first tick is the one that contains from, the last is the last one that starts
// before to. So consecutive ranges whose bounds fall on tick boundaries share no ID; a
// bound inside a tick puts that whole tick into both ranges, because an ID carries only
// its tick. A range is cut to the layout's lifetime.
//
// The error wraps [ErrLayout] for an invalid layout, and [ErrRange] for a range that is
// empty (to is not after from) or lies wholly before the epoch or from [Layout.End]
// on.
func (l Layout) Between(from, to time.Time) (lo, hi ID, err error) {
	if err := l.Validate(); err != nil {
		return 0, 0, err
	}
	from, to = from.Round(0), to.Round(0)
	end := l.end()
	switch {
	case to.Equal(from):
		return 0, 0, l.instantError(to, "is both start and end of the range, which is empty; the end must be later")
	case to.Before(from):
		return 0, 0, l.instantError(to, fmt.Sprintf("ends the range %s before its start, %s; the end must be later", spanText(from, to), instantText(from)))
	case !to.After(l.Epoch):
		return 0, 0, l.instantError(to, fmt.Sprintf("ends the range %s before the epoch", spanText(l.Epoch, to)))
	case !from.Before(end):
		return 0, 0, l.instantError(from, fmt.Sprintf("starts the range %s after the time field's end", spanText(from, end)))
	}
	if from.Before(l.Epoch) {
		from = l.Epoch
	}
	if to.After(end) {
		to = end
	}
	return l.pack(l.tickOf(from), 0, 0), l.pack(l.tickOf(to.Add(-1)), l.MaxNode(), l.maxSequence()), nil
}

// tickAt returns the tick that contains t, of a valid layout.
func (l Layout) tickAt(t time.Time) (uint64, error) {
	// Without its monotonic reading t compares as the wall time it shows.
	t = t.Round(0)
	if t.Before(l.Epoch) {
		return 0, l.instantError(t, fmt.Sprintf("is %s before the epoch", spanText(l.Epoch, t)))
	}
	if end := l.end(); !t.Before(end) {
		return 0, l.instantError(t, fmt.Sprintf("is %s after the time field's last instant", spanText(t, end.Add(-1))))
	}
	return l.tickOf(t), nil
}

func (l Layout) instantError(t time.Time, reason string) error {
	return fmt.Errorf("instant %s is %w: it %s; the layout covers %s up to, not including, %s",
		instantText(t), ErrRange, reason, instantText(l.Epoch), instantText(l.end()))
}

// tickOf returns the number of whole ticks from the epoch to t, which must lie
// within the lifetime of a valid layout. The nanoseconds of 8000 years take 68
// bits, hence the 128-bit arithmetic.
func (l Layout) tickOf(t time.Time) uint64 {
	sec, ns := t.Unix()-l.Epoch.Unix(), int64(t.Nanosecond()-l.Epoch.Nanosecond())
	if ns < 0 {
		sec, ns = sec-1, ns+int64(time.Second)
	}
	hi, lo := bits.Mul64(uint64(sec), uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(ns), 0)
	// No overflow, since t lies within the time field's at most 2^62 ticks.
	tick, _ := bits.Div64(hi+carry, lo, uint64(l.Tick))
	return tick
}

// tickTime returns the instant at which tick starts, in UTC. When that is past
// maxInstant, it returns maxInstant and false. It does not check that the tick
// fits the time field, so that the tick after the last gives the field's end.
func (l Layout) tickTime(tick uint64) (time.Time, bool) {
	hi, lo := bits.Mul64(tick, uint64(l.Tick))
	if hi >= uint64(time.Second) {
		return maxInstant, false // more than 2^64 seconds
	}
	sec, ns := bits.Div64(hi, lo, uint64(time.Second))
	if sec > uint64(maxInstant.Unix()) {
		return maxInstant, false
	}
	t := time.Unix(l.Epoch.Unix()+int64(sec), int64(l.Epoch.Nanosecond())+int64(ns)).UTC()
	if !t.Before(maxInstant) {
		return maxInstant, false
	}
	return t, true
}

// idsPerSecond returns how many IDs a node can issue in a second.
func idsPerSecond(sequenceBits int, tick time.Duration) float64 {
	return math.Ldexp(float64(time.Second)/float64(tick), sequenceBits)
}

// fieldYears returns how long a time field lasts.
func fieldYears(timeBits int, tick time.Duration) float64 {
	return math.Ldexp(tick.Seconds(), timeBits) / span.Year
}

func instantText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// spanText writes the distance of two instants for people. It works in floating
// point because [time.Time.Sub] stops at 292 years.
func spanText(a, b time.Time) string {
	return span.Seconds(math.Abs(float64(a.Unix()) - float64(b.Unix()) + float64(a.Nanosecond()-b.Nanosecond())/1e9))
}
