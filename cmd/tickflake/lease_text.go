package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/tickflake/tickflake/lease"
)

// untilFormat is that of limits: the milliseconds are the ticks of most layouts.
const untilFormat = "2006-01-02T15:04:05.000Z"

// holdingJSON is a node number as scripts see it. Durations are in nanoseconds.
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
	if format == formatJSON {
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

// writeHolding writes all there is to say about a node number that can be read.
func writeHolding(w io.Writer, h lease.Holding, format string, now time.Time) error {
	switch {
	case format == formatJSON:
		return writeHoldingJSON(w, h, now)
	case h.Err != nil:
		return nil // which says it all
	}
	layout := h.Layout.String()
	if h.Layout.Name != "" {
		layout = h.Layout.Name + ", " + layout
	}
	_, err := fmt.Fprintf(w, "node    %d\nstate   %s\nowner   %s\nuntil   %s\nclock   %s\nwindow  %s\nlayout  %s\n",
		h.Node, h.State, ownerText(h), untilText(h, now), clockText(h, now), h.Window, layout)
	return err
}

func ownerText(h lease.Holding) string {
	if h.Owner == "" {
		return "-"
	}
	return visible(h.Owner)
}

// untilText tells a limit, and how far it is.
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

// clockKnown reports whether anything is known of the holder's clock.
func clockKnown(h lease.Holding, now time.Time) bool {
	return h.State == lease.Held && (h.Ahead != 0 || h.Limit.After(now))
}

// clockText tells how far the holder's clock is ahead of ours, and how well that is
// known.
func clockText(h lease.Holding, now time.Time) string {
	if !clockKnown(h, now) {
		return "-"
	}
	known := h.Window / 6
	switch {
	case h.Ahead.Abs() <= known:
		return fmt.Sprintf("±%s", roundly(known))
	case h.Ahead < 0:
		return fmt.Sprintf("-%s ±%s", roundly(-h.Ahead), roundly(known))
	}
	return fmt.Sprintf("+%s ±%s", roundly(h.Ahead), roundly(known))
}

// roundly drops the digits of a duration that nobody wants to see.
func roundly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// visible replaces what could play tricks with a terminal: other processes, or other
// machines, have written it.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
