package generatortest

import (
	"cmp"
	_ "embed" // page.css
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Failure is a broken promise as [WritePage] shows it.
type Failure struct {
	Title   string   `json:"title,omitempty"`   // such as "F5 repeated-steps"
	Lines   []string `json:"lines,omitempty"`   // what there is to say
	Again   Event    `json:"again"`             // the call that broke the promise
	First   *Event   `json:"first,omitempty"`   // the earlier call, if there are two
	History []Event  `json:"history,omitempty"` // what else happened, in any order; without it, there is no picture
}

// Failure returns what a page shows of a failed result: the least script, if [Shrink] has found one.
func (r Result) Failure() Failure {
	worst := r.Worst()
	f := Failure{Title: strings.TrimSpace(r.Fault + " " + r.Name), Lines: r.Lines(), Again: worst.Event, First: worst.First}
	if f.History = r.History; r.Least != nil {
		f.History = r.Least.History
	}
	return f
}

//go:embed page.css
var pageStyle string

// WritePage writes failures as one page of HTML that needs no other file. Each has a picture: the
// machine's clock over true time, the processes below it, and the two calls that returned one ID.
func WritePage(w io.Writer, title string, failures ...Failure) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>\n<style>\n%s</style>\n<h1>%[1]s</h1>\n", html.EscapeString(title), pageStyle)
	for _, f := range failures {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<pre>%s</pre>\n", html.EscapeString(f.Title), html.EscapeString(strings.Join(f.Lines, "\n")))
		if len(f.History) > 0 {
			f.draw(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The picture's measures.
const (
	width, left, right = 960.0, 110.0, 60.0
	top, lane          = 60.0, 30.0
)

// draw writes the picture.
func (f Failure) draw(b *strings.Builder) {
	events := append(slices.Clone(f.History), f.Again)
	if f.First != nil {
		events = append(events, *f.First)
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		// What happened after a call has its number: the call comes first.
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Call, b.Call), min(len(a.Do), 1)-min(len(b.Do), 1))
	})
	events = slices.Compact(events)
	events = events[:1+slices.Index(events, f.Again)] // what came later is of no use
	var processes []int
	var walls []Seconds
	for _, e := range events {
		if e.Do == "" {
			processes = append(processes, e.Process)
		}
		walls = append(walls, e.Wall)
	}
	slices.Sort(processes)
	slices.Sort(walls)
	processes, walls = slices.Compact(processes), slices.Compact(walls)
	chart := min(240, 40*float64(len(walls)-1))
	up := places(len(walls), func(i int) Seconds { return walls[i] - walls[max(0, i-1)] })
	along := places(len(events), func(i int) Seconds { return events[i].At - events[max(0, i-1)].At })
	x := func(i int) float64 { return left + along[i]*(width-left-right) }
	y := func(e Event) float64 {
		i, _ := slices.BinarySearch(walls, e.Wall)
		return top + chart - up[i]*chart
	}
	row := func(process int) float64 {
		i, _ := slices.BinarySearch(processes, process)
		return top + chart + lane*float64(i+2)
	}
	bottom := row(math.MaxInt)

	fmt.Fprintf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"the clock over true time, and the processes\">\n", width, bottom+lane)
	text := func(class, anchor string, x, y float64, text string) {
		fmt.Fprintf(b, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, html.EscapeString(text))
	}
	// The clock, which jumps where a step has made it jump.
	line := ""
	for i, e := range events {
		if i > 0 && e.Do != "" {
			line += fmt.Sprintf("%.1f,%.1f ", x(i), y(events[i-1]))
		}
		line += fmt.Sprintf("%.1f,%.1f ", x(i), y(e))
	}
	for _, process := range processes {
		var calls []float64
		for i, e := range events {
			if e.Do == "" && e.Process == process {
				calls = append(calls, x(i))
			}
		}
		fmt.Fprintf(b, "<path class=\"lane\" d=\"M%.1f %.1fH%.1f\"/>\n", calls[0], row(process), calls[len(calls)-1])
		text("", "end", left-16, row(process)+4, fmt.Sprintf("process %d", process))
	}
	fmt.Fprintf(b, "<polyline class=\"wall\" points=\"%s\"/>\n", line)
	rules := 0
	for i, e := range events {
		if e.Do != "" {
			fmt.Fprintf(b, "<path class=\"rule\" d=\"M%.1f %gV%g\"/>\n", x(i), top-10, bottom-lane/2)
			text("", "start", x(i), 15+15*float64(rules%3), e.Do) // one below the other, as they may be close
			rules++
			continue
		}
		fmt.Fprintf(b, "<g class=\"p%d\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/><circle cx=\"%.1[2]f\" cy=\"%.1[4]f\" r=\"3.5\"/></g>\n", e.Process%4, x(i), y(e), row(e.Process))
	}
	text("", "end", left-16, y(events[0])+4, "the clock")
	text("", "end", left-45, bottom+4, "true time")
	// The two calls.
	for i, e := range events {
		word, from, anchor := "here", y(e)-14, "middle"
		switch {
		case f.First != nil && e == *f.First:
			word, from, anchor = "first", y(e)+22, "end"
			fmt.Fprintf(b, "<path class=\"same\" d=\"M%.1f %.1fH%g\"/>\n", x(i), y(e), width-right)
		case e != f.Again:
			continue
		case f.First != nil:
			word, anchor = "again", "start"
		}
		fmt.Fprintf(b, "<g class=\"bad\"><circle class=\"twice\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/><circle class=\"twice\" cx=\"%.1[1]f\" cy=\"%.1[3]f\" r=\"8\"/></g>\n", x(i), y(e), row(e.Process))
		text("bad", "middle", x(i), from, word)
		text("", anchor, x(i), bottom+4, time.Duration(e.At).Round(time.Microsecond).String())
	}
	fmt.Fprint(b, "</svg>\n<p>Up: the machine's clock. Right: true time. Each dot is a call, or a line of a program when it came; the dashed line is the clock's reading at the first of the two. Both axes keep the order, and draw long gaps shorter.</p>\n")
}

// places returns where n things in order stand between 0 and 1: each after the one before, by the
// logarithm of the gap between them.
func places(n int, gap func(i int) Seconds) []float64 {
	at := make([]float64, n)
	for i := 1; i < n; i++ {
		at[i] = at[i-1] + 1 + math.Log1p(float64(gap(i))/float64(time.Microsecond))/3
	}
	for i := range at {
		at[i] /= max(1, at[n-1])
	}
	return at
}
