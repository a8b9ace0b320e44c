package scorecard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const (
	notRun = "–"
	fine   = "✓"
	wrong  = "✗ "
)

// kinds are what may go wrong, the worst first, in a word that fits a cell.
var kinds = []struct {
	kind generatortest.Kind
	word string
}{
	{generatortest.Duplicate, "dup"},
	{generatortest.EndOfTime, "out of time"},
	{generatortest.Disorder, "disorder"},
	{generatortest.NoRecovery, "not recovered"},
	{generatortest.NoStart, "no start"},
	{generatortest.Stall, "stall"},
	{generatortest.Stale, "stale"},
	{generatortest.Lead, "lead"},
	{generatortest.Rejected, "rejected"},
	{generatortest.WrongError, "wrong err"},
}

// cell sums up what a row did under a fault: good if nobody noticed anything, bad if
// something went wrong that must not, or was promised not to, and else what it cost.
func (r *row) cell(f fault) results.Cell {
	o, ok := r.ran(f)
	if !ok {
		return results.Cell{Text: notRun}
	}
	c := r.judged(f, o)
	c.Text += r.star(f)
	return c
}

// star marks what came of another script than the catalogue's.
func (r *row) star(f fault) string {
	if _, instead := r.Instead[f.id]; instead {
		return "*"
	}
	return ""
}

func (r *row) judged(f fault, o peers.Outcome) results.Cell {
	for _, k := range kinds {
		switch n := o.Violated[k.kind]; {
		case n == 0:
		case k.kind == generatortest.Stall:
			return results.Cell{Text: wrong + "stall " + span(o.LongestStall), Mark: results.Bad}
		case k.kind == generatortest.Lead:
			return results.Cell{Text: wrong + "lead " + span(o.LargestLead), Mark: results.Bad}
		default:
			return results.Cell{Text: wrong + count(n) + " " + k.word, Mark: results.Bad}
		}
	}
	if o.Failed() { // in a way that has no word yet
		return results.Cell{Text: wrong + o.Summary(), Mark: results.Bad}
	}
	if text := r.price(f, o); text != "" {
		return results.Cell{Text: text}
	}
	return results.Cell{Text: fine, Mark: results.Good}
}

// price is what a fault cost the callers, the worst first, though nothing was promised
// otherwise; or it is empty.
func (r *row) price(f fault, o peers.Outcome) string {
	switch {
	case o.Errors > 0 && !f.rightly:
		return count(o.Errors) + " err"
	case o.Disorder > 0:
		return count(o.Disorder) + " disorder"
	case o.Waited > 0:
		return "stall " + span(o.LongestStall)
	case o.LargestLead > r.Tick:
		return "lead " + span(o.LargestLead)
	}
	return ""
}

// span is a duration in one unit, such as "3.8 s".
func span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		from, unit time.Duration
		name       string
	}{
		{730 * day, 8766 * time.Hour, "years"}, {2 * day, day, "d"}, {time.Hour, time.Hour, "h"}, {time.Minute, time.Minute, "min"},
		{time.Second, time.Second, "s"}, {time.Millisecond, time.Millisecond, "ms"}, {time.Microsecond, time.Microsecond, "µs"},
	} {
		if d >= u.from {
			return short(float64(d)/float64(u.unit)) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// short is a number with at most one digit after the point.
func short(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }

// count is a number with its thousands apart.
func count(n int) string { return results.Figure(float64(n)) }

// lost is how many IDs there might have been while calls waited. The text is that of
// a generator whose format has no bound.
func (r *row) lost(o peers.Outcome) results.Cell {
	if o.Waited > 0 && r.Ceiling == 0 {
		return results.Cell{Text: "waited " + span(o.Waited)}
	}
	n := o.Waited.Seconds() * r.Ceiling
	return results.Cell{Samples: []float64{n}, Text: results.Short(n)}
}
