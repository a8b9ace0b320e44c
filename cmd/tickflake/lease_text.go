package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/lease"
)

// untilFormat is that of limits: the milliseconds are the ticks of most layouts.
const untilFormat = "2006-01-02T15:04:05.000Z"

// holdingJSON is the JSON of a node number. Durations are in nanoseconds.
type holdingJSON struct {
	Node      int64          `json:"node"`
	State     string         `json:"state"`
	Owner     string         `json:"owner"`
	Until     string         `json:"until"`
	Remaining time.Duration  `json:"remaining"`
	Ahead     *time.Duration `json:"ahead"`
	Window    time.Duration  `json:"window"`
	Layout    string         `json:"layout"`
	Error     string         `json:"error"`
}

// writeHoldings writes a table, or one JSON object per line.
func writeHoldings(w io.Writer, all []lease.Holding, format string, now time.Time) error {
	if format == command.FormatJSON {
		for _, h := range all {
			if err := writeHoldingJSON(w, h, now); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tOWNER\tUNTIL\tCLOCK")
	for _, h := range all {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", h.Node, h.State, ownerText(h), untilText(h, now), clockText(h, now))
	}
	return t.Flush()
}

func writeHoldingJSON(w io.Writer, h lease.Holding, now time.Time) error {
	object := holdingJSON{Node: h.Node, State: h.State.String(), Owner: h.Owner}
	if h.Err != nil {
		object.Error = h.Err.Error()
	} else {
		object.Until = h.Limit.UTC().Format(time.RFC3339Nano)
		object.Remaining = h.Limit.Sub(now)
		object.Window = h.Window
		object.Layout = h.Layout.String()
	}
	if clockKnown(h, now) {
		object.Ahead = &h.Ahead
	}
	return json.NewEncoder(w).Encode(object)
}

func ownerText(h lease.Holding) string {
	if h.Owner == "" {
		return "-"
	}
	return command.Visible(h.Owner)
}

// untilText returns a limit and its distance.
func untilText(h lease.Holding, now time.Time) string {
	if h.Err != nil {
		return "-"
	}
	left := h.Limit.Sub(now)
	distance := fmt.Sprintf("in %s", roundly(left))
	if left < 0 {
		distance = fmt.Sprintf("%s ago", roundly(-left))
	}
	return fmt.Sprintf("%s (%s)", h.Limit.UTC().Format(untilFormat), distance)
}

// clockKnown reports whether the holder's clock is known: not if its extension is overdue.
func clockKnown(h lease.Holding, now time.Time) bool {
	return h.State == lease.Held && (h.Ahead != 0 || h.Limit.Sub(now) >= h.Window/3*2)
}

// clockText returns how far the holder's clock is ahead of this one, and the error of
// that.
func clockText(h lease.Holding, now time.Time) string {
	if !clockKnown(h, now) {
		return "-"
	}
	known := h.Window / 6
	if h.Ahead <= known {
		return fmt.Sprintf("±%s", roundly(known))
	}
	return fmt.Sprintf("+%s ±%s", roundly(h.Ahead), roundly(known))
}

// roundly rounds a duration to a millisecond, or to a second from 10 seconds on.
func roundly(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return span.Text(d.Round(time.Second))
}
