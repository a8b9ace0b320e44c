package clocktest

import (
	"math"
	"time"
)

// maxRate is the fastest rate of a slew, times true time.
const maxRate = 1000

// dials are a wall and a monotonic clock with their faults. They hold no lock. All
// times are in nanoseconds and saturate.
type dials struct {
	now int64 // true time since construction

	// Where the clocks stand, before they are read coarsely.
	wall int64 // since 1970
	mono int64 // since construction or the last restart
	lost int64 // by suspends since then, from mono

	thaw    int64 // both stand still until this true time
	slewEnd int64 // the wall runs at rate until this true time
	rate    float64
	// The slew so far: unfrozen true time, and the wall's share of it. The share is
	// computed from the whole, so that roundings do not add up, and the wall does not
	// depend on the number of moves.
	slewRan, slewGave int64

	leap bool // the next whole second is repeated

	grain int64 // of the readings, or 0
	// The readings at which grain was set. They hold until the next multiple is
	// reached, because a clock that becomes coarse does not go back.
	wallHold, monoHold int64
}

// advance lets true time pass up to the instant to, in pieces in which both clocks run
// evenly. An instant in the past changes nothing.
func (d *dials) advance(to int64) {
	for d.now < to {
		end := to
		frozen, slewing := d.now < d.thaw, d.now < d.slewEnd
		if frozen {
			end = min(end, d.thaw)
		}
		if slewing {
			end = min(end, d.slewEnd)
		}
		if !frozen {
			ran := end - d.now
			d.mono = add(d.mono, ran)
			if slewing {
				ran = d.slewed(ran)
			}
			d.runWall(ran)
		}
		d.now = end
	}
	d.read() // so that a hold ends when its multiple comes, also without a reading
}

// slewed returns how far the wall goes in the next ran of true time.
func (d *dials) slewed(ran int64) int64 {
	d.slewRan = add(d.slewRan, ran)
	all := int64(math.MaxInt64)
	if f := math.Round(d.rate * float64(d.slewRan)); f < math.MaxInt64 {
		all = int64(f)
	}
	gain := all - d.slewGave
	d.slewGave = all
	return gain
}

// runWall advances the wall by by, which is not negative, and repeats a second on the
// way if a leap second is due.
func (d *dials) runWall(by int64) {
	next := add(d.wall, by)
	second := add(floor(d.wall, int64(time.Second)), int64(time.Second))
	if d.leap && next >= second {
		d.leap = false
		d.wall = second - int64(time.Second)
		d.read() // it may have gone below its hold, and come back
		next -= int64(time.Second)
	}
	d.wall = next
}

func (d *dials) slew(rate float64, last int64) {
	if math.IsNaN(rate) {
		rate = 1
	}
	d.rate = min(max(rate, 0), maxRate)
	d.slewEnd = add(d.now, max(last, 0))
	d.slewRan, d.slewGave = 0, 0
}

func (d *dials) coarse(grain int64) {
	d.wallHold, d.monoHold = d.read()
	d.grain = max(grain, 0)
}

// read returns the two readings.
func (d *dials) read() (wall, mono int64) {
	if d.grain == 0 {
		return d.wall, d.mono
	}
	return coarsely(d.wall, d.grain, &d.wallHold), coarsely(d.mono, d.grain, &d.monoHold)
}

// coarsely returns the last multiple of grain that v has reached, or hold until v
// reaches a multiple after it. A clock that has gone back is no longer held.
func coarsely(v, grain int64, hold *int64) int64 {
	reached := floor(v, grain)
	if v < *hold || reached >= *hold {
		*hold = math.MinInt64
	}
	return max(reached, *hold)
}

// floor returns the largest multiple of unit that is not above v.
func floor(v, unit int64) int64 {
	over := v % unit
	if over < 0 {
		over += unit
	}
	return add(v, -over)
}

// add returns a + b, or the limit that the sum would pass.
func add(a, b int64) int64 {
	sum := a + b
	if a > 0 && b > 0 && sum < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && sum >= 0 {
		return math.MinInt64
	}
	return sum
}
