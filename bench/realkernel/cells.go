package realkernel

import (
	"math"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// judge is the effect of a fault on a subject: good if no caller noticed anything, bad if
// an ID came twice or a promise was broken, and else the price.
func judge(r kernel.Row) results.Cell {
	v := r.Verdict
	said := ""
	switch {
	case v.Duplicates > 0:
		said = count(v.Duplicates) + " dup"
	case v.Disorder > 0:
		said = count(v.Disorder) + " disorder"
	case v.Failed > 0:
		said = count(v.Failed) + " err"
	case v.Stall > noise:
		said = "stall " + results.Span(v.Stall)
	case v.Lead > noise:
		said = "lead " + results.Span(v.Lead)
	}
	bad := v.Duplicates > 0 || len(r.Broken) > 0
	switch {
	case r.Known != "" && r.Group == kernel.Ours:
		return results.Cell{Text: "✗ " + said + "*", Mark: results.Bad}
	case bad:
		return results.Cell{Text: strings.TrimSpace("✗ " + said), Mark: results.Bad}
	case said == "":
		return results.Cell{Text: "✓", Mark: results.Good}
	}
	return results.Cell{Text: said}
}

func count(n int) string { return results.Figure(float64(n)) }

// quantities are shown for every subject and fault, whatever was promised.
var quantities = []struct {
	id, title, unit string
	better          results.Better
	of              func(kernel.Verdict) results.Cell
}{
	{"duplicates", "IDs issued twice on a real kernel", "IDs", results.Less, func(v kernel.Verdict) results.Cell { return counted(v.Duplicates) }},
	{"disorder", "IDs out of order on a real kernel", "IDs", results.Less, func(v kernel.Verdict) results.Cell { return counted(v.Disorder) }},
	{"errors", "Calls and starts that failed on a real kernel", "", results.Less, func(v kernel.Verdict) results.Cell { return counted(v.Failed) }},
	{"stall", "Longest stall of a call on a real kernel", "s", results.Less, func(v kernel.Verdict) results.Cell { return lasts(v.Stall) }},
	{"lead", "Largest lead of an ID over its clock on a real kernel", "s", results.Less, func(v kernel.Verdict) results.Cell { return lasts(v.Lead) }},
	{"recovery", "Time until no call failed any more", "s", results.Less, recovered},
	{"ids", "IDs counted", "IDs", results.Neither, func(v kernel.Verdict) results.Cell { return counted(v.IDs) }},
}

func counted(n int) results.Cell {
	return results.Cell{Samples: []float64{float64(n)}, Text: count(n)}
}

func lasts(d time.Duration) results.Cell {
	if d <= 0 {
		return results.Cell{Samples: []float64{0}, Text: "0"}
	}
	return results.Cell{Samples: []float64{d.Seconds()}, Text: results.Span(d)}
}

// recovered is how long a subject took to recover. One that issued nothing after its last
// failed call has a negative time.
func recovered(v kernel.Verdict) results.Cell {
	if v.Recovery < 0 {
		return results.Cell{Text: "never"}
	}
	return lasts(v.Recovery)
}

// moved is how much further a clock moved than the host's.
func moved(clock, host time.Duration) results.Cell {
	d := clock - host
	cell := results.Cell{Samples: []float64{d.Seconds()}, Text: "0"}
	switch {
	case d >= resolution:
		cell.Text = "+" + results.Span(d)
	case d <= -resolution:
		cell.Text = "−" + results.Span(-d)
	}
	return cell
}

// resolution is the least difference between the clocks of two machines that is shown: they
// are read through a serial line.
const resolution = 10 * time.Millisecond

// rate is how much faster a clock ran than CLOCK_MONOTONIC_RAW, which no slew reaches.
func rate(clock, raw time.Duration) results.Cell {
	if raw <= 0 {
		return results.Cell{}
	}
	ppm := math.Round(1e6 * float64(clock-raw) / float64(raw))
	if math.Abs(ppm) < readingError {
		ppm = 0
	}
	return results.Cell{Samples: []float64{ppm}}
}

// readingError is how large a rate can seem to be that is 0: the two clocks are read one
// after the other.
const readingError = 20

func texts(all ...string) (cells []results.Cell) {
	for _, text := range all {
		cells = append(cells, results.Cell{Text: text})
	}
	return cells
}
