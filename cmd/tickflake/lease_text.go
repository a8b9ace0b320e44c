package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/lease"
)

// untilFormat is that of limits: the milliseconds are the ticks of most layouts.
const untilFormat = "2006-01-02T15:04:05.000Z"

// holding is the JSON of a node number.
type holding struct {
	Node      int64    `json:"node"`
	State     string   `json:"state"`
	Owner     string   `json:"owner"`
	Until     string   `json:"until"`
	Remaining float64  `json:"remaining_seconds"`
	Ahead     *float64 `json:"ahead_seconds"`
	Window    float64  `json:"window_seconds"`
	Layout    string   `json:"layout"`
	Error     string   `json:"error"`

	of    lease.Holding
	now   time.Time
	floor time.Time // of the fleet
	last  int64     // of the node numbers of the line
}

func holdingOf(of lease.Holding, now time.Time) holding {
	h := holding{Node: of.Node, State: of.State.String(), Owner: of.Owner, of: of, now: now, last: of.Node}
	if of.Err != nil {
		h.Error = of.Err.Error()
		return h
	}
	h.Until, h.Remaining = of.Limit.UTC().Format(time.RFC3339Nano), of.Limit.Sub(now).Seconds()
	h.Window, h.Layout = of.Window.Seconds(), of.Layout.String()
	// An extension that is overdue says nothing of the holder's clock.
	if of.State == lease.Held && (of.Ahead != 0 || h.Remaining >= h.Window/3*2) {
		ahead := of.Ahead.Seconds()
		h.Ahead = &ahead
	}
	return h
}

// absorb takes the next node number into the line, if both have moved to one store, or are of the past.
func (h *holding) absorb(next lease.Holding) bool {
	if next.State != lease.Moved && next.State != lease.OfPast && next.State != lease.Retired || h.of.State != next.State || next.Owner != h.Owner || next.Node != h.last+1 {
		return false
	}
	h.last = next.Node
	if next.Limit.After(h.of.Limit) {
		h.of.Limit = next.Limit
	}
	return true
}

// row is the holding as a line of a table.
func (h holding) row() []string {
	nodes := choose(h.last > h.Node, fmt.Sprintf("%d-%d", h.Node, h.last), fmt.Sprint(h.Node))
	return []string{nodes, h.State, ownerText(h.of), untilText(h.of, h.now), h.clock()}
}

// clock returns how far the holder's clock is ahead of this one, and the error of that.
func (h holding) clock() string {
	known := h.of.Window / 6
	switch {
	case h.Ahead == nil && h.doubtful():
		return "was ahead?"
	case h.Ahead == nil:
		return "-"
	case h.of.Ahead <= known:
		return fmt.Sprintf("±%s", roundly(known))
	}
	return fmt.Sprintf("+%s ±%s", roundly(h.of.Ahead), roundly(known))
}

// doubtful reports whether the limit lies so far ahead that this clock is behind, or the last holder's was ahead.
func (h holding) doubtful() bool {
	return (h.of.State == lease.Held || h.of.State == lease.Expired || h.of.State == lease.Released) && h.of.Limit.Sub(latest(h.now, h.floor)) > time.Minute+2*h.of.Window
}

func ownerText(h lease.Holding) string { return command.Visible(cmp.Or(h.Owner, "-")) }

// untilText returns a limit and its distance, if there is one.
func untilText(h lease.Holding, now time.Time) string {
	if h.Err != nil || h.State == lease.OfPast || h.State == lease.Retired || h.State == lease.Moved && !h.Limit.After(h.Layout.Epoch) { // nothing was granted
		return "-"
	}
	return limitText(h.Limit, now)
}

func limitText(limit, now time.Time) string {
	left := limit.Sub(now)
	return fmt.Sprintf("%s (%s)", limit.UTC().Format(untilFormat), choose(left < 0, roundly(-left)+" ago", "in "+roundly(left)))
}

// roundly rounds a duration to a millisecond, or to a second from 10 seconds on.
func roundly(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return span.Text(d.Round(time.Second))
}
