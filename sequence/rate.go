package sequence

import (
	"math"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
)

// rate is the average rate at which numbers are taken, and the step that follows from it.
type rate struct {
	perSecond float64
	at        time.Duration // elapsed time of the last measurement
	issued    uint64        // at that time
	step      uint64        // of the last segment
}

// slowDown is the time constant by which the average falls. It rises at once.
const slowDown = time.Minute

// now is the average at an instant.
func (r rate) now(elapsed time.Duration, issued uint64) float64 {
	dt := (elapsed - r.at).Seconds()
	if dt <= 0 {
		return r.perSecond
	}
	now := float64(issued-min(r.issued, issued)) / dt
	if now >= r.perSecond {
		return r.perSecond // between two measurements a burst says nothing
	}
	return now + (r.perSecond-now)*math.Exp(-dt/slowDown.Seconds())
}

// next measures the rate, and returns the step of the next segment: enough for an outage, and
// at most twice the last one, so that a short burst does not reserve for an hour.
func (r *rate) next(elapsed time.Duration, issued uint64, outage time.Duration, record cell.Sequence) uint64 {
	// Over a shorter time than this, a few numbers would look like a high rate.
	least := outage / 10
	taken := float64(issued - min(r.issued, issued))
	switch dt := elapsed - r.at; {
	case dt < least:
		r.perSecond = max(r.perSecond, taken/least.Seconds())
	case dt > 0:
		r.perSecond = max(r.now(elapsed, issued), taken/dt.Seconds())
		r.at, r.issued = elapsed, issued
	}
	want := min(r.perSecond*outage.Seconds(), float64(2*r.step), float64(record.MaxStep))
	return clamp(uint64(math.Ceil(want)), record)
}

// clamp bounds a step by those of the definition.
func clamp(step uint64, r cell.Sequence) uint64 {
	return min(max(step, uint64(r.MinStep)), uint64(r.MaxStep))
}
