package lease

import (
	"math"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/snowflake"
)

// timeline counts time in the ticks of a layout.
type timeline struct {
	layout snowflake.Layout
	spec   string // the layout's text
}

// nodes is the number of node numbers, which is at most the number of keys.
func (t *timeline) nodes() int64 { return cell.AllNodes(t.layout).To }

// end is the tick at which the layout's time ends.
func (t *timeline) end() uint64 { return 1 << t.layout.TimeBits }

// tickOf is the tick of an instant, or 0 before the epoch.
func (t *timeline) tickOf(at time.Time) uint64 {
	return uint64(max(at.Sub(t.layout.Epoch), 0) / t.layout.Tick)
}

// limitAt is the first tick that does not begin before an instant, or the end of time for an instant past it or
// past what 64-bit nanoseconds can express.
func (t *timeline) limitAt(at time.Time) uint64 {
	limit := min(t.tickOf(at), t.end())
	if t.time(limit).Before(at) {
		limit++
	}
	if t.time(limit).Before(at) {
		return t.end()
	}
	return min(limit, t.end())
}

// until is an instant with this limit: [timeline.limitAt] of it is not below.
func (t *timeline) until(limit uint64) time.Time {
	if at := t.time(limit); limit < t.end() && t.limitAt(at) == limit {
		return at
	}
	return t.layout.End()
}

// between is the time from one tick to another. It saturates, and is below zero if the
// second tick is the earlier one.
func (t *timeline) between(from, to uint64) time.Duration {
	if to < from {
		return -t.between(to, from)
	}
	if ticks := to - from; ticks <= uint64(math.MaxInt64/t.layout.Tick) {
		return time.Duration(ticks) * t.layout.Tick
	}
	return math.MaxInt64
}

// time is the start of tick, or the latest time that 64-bit nanoseconds can express.
func (t *timeline) time(tick uint64) time.Time {
	latest := time.Unix(0, math.MaxInt64)
	if since := t.between(0, tick); since < latest.Sub(t.layout.Epoch) {
		return t.layout.Epoch.Add(since).UTC()
	}
	return latest.UTC()
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// encode returns the value of a cell, with its limit as a text for people.
func (t *timeline) encode(r cell.Node) []byte {
	r.Until = t.time(r.Limit).Format(timeFormat)
	return cell.Reads(r.Encode(), cell.DecodeNode)
}
