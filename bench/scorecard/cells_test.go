package scorecard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// A generator that begins a tick anew when the clock goes back is shown as bad.
func TestPlantedGenerator(t *testing.T) {
	broken := generatortest.Subject[int64]{
		Tick: time.Millisecond,
		Time: func(id int64) time.Time { return time.UnixMilli(id >> 16) },
		New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
			var last, count int64
			return generatortest.Process[int64]{Next: func() (int64, error) {
				if now := clock.Now().UnixMilli(); now != last {
					last, count = now, 0
				}
				count++
				return last<<16 | count, nil
			}}, nil
		},
	}
	r := &row{short: "broken", results: map[string]generatortest.Result{}}
	r.Name, r.Driven = "broken", peers.ByClock
	all := generatortest.Catalogue()
	for _, s := range generatortest.Run(broken, generatortest.Catalogue()[:3]...).Results {
		r.results[s.Fault] = s
	}
	back, ahead := r.cell("F1"), r.cell("F3")
	assert.Equal(t, results.Bad, back.Mark)
	assert.Contains(t, back.Text, " dup")
	assert.Equal(t, results.Cell{Text: "✓", Mark: results.Good}, ahead, "no clock goes back")
	s := results.Section{Tables: tables([]*row{r}, all)}
	assert.Positive(t, cell(t, table(t, s, "faults-duplicates"), "broken", "F1").Samples[0])
	assert.Equal(t, []float64{1, 0, 2, 13}, []float64{
		cell(t, table(t, s, "faults-summary"), "broken", "fine").Samples[0], cell(t, table(t, s, "faults-summary"), "broken", "price").Samples[0],
		cell(t, table(t, s, "faults-summary"), "broken", "wrong").Samples[0], cell(t, table(t, s, "faults-summary"), "broken", "none").Samples[0]})
	assert.Equal(t, "In these faults, no strategy issues an ID twice under a lease; broken do in some faults.", verdict(s))
}

func TestJudged(t *testing.T) {
	r := &row{}
	r.Tick = time.Millisecond
	r.Instead = map[string]peers.Variant{"F7": {}}
	bad := func(kinds ...generatortest.Kind) generatortest.Result {
		o := generatortest.Result{Violated: map[generatortest.Kind]int{}, LongestStall: 1500 * time.Millisecond, LargestLead: time.Hour}
		for i, k := range kinds {
			o.Violated[k] = 1200 * (i + 1)
		}
		return o
	}
	const f = "F1"
	for _, tt := range []struct {
		fault   string
		outcome generatortest.Result
		want    results.Cell
	}{
		{f, generatortest.Result{}, results.Cell{Text: "✓", Mark: results.Good}},
		{"F7", generatortest.Result{}, results.Cell{Text: "✓*", Mark: results.Good}},
		{f, generatortest.Result{Skipped: "why not"}, results.Cell{Text: "–"}},
		{f, bad(generatortest.Stall), results.Cell{Text: "✗ stall 1.5 s", Mark: results.Bad}},
		{f, bad(generatortest.Lead), results.Cell{Text: "✗ lead 1 h", Mark: results.Bad}},
		{f, bad(generatortest.Lead, generatortest.Duplicate), results.Cell{Text: "✗ 2,400 dup", Mark: results.Bad}},
		{f, bad("of a new kind"), results.Cell{Text: "✗ 1200 of a new kind", Mark: results.Bad}},
		{f, generatortest.Result{Errors: 12, Disorder: 3}, results.Cell{Text: "12 err"}},
		{"F17", generatortest.Result{Errors: 12}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{Disorder: 3, LongestStall: time.Second}, results.Cell{Text: "3 disorder"}},
		{f, generatortest.Result{LongestStall: time.Millisecond}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{LongestStall: 3 * time.Second}, results.Cell{Text: "stall 3 s"}},
		{f, generatortest.Result{LargestLead: time.Millisecond}, results.Cell{Text: "✓", Mark: results.Good}},
		{f, generatortest.Result{LargestLead: 2 * time.Minute}, results.Cell{Text: "lead 2 min"}},
	} {
		r.results = map[string]generatortest.Result{tt.fault: tt.outcome}
		assert.Equal(t, tt.want, r.cell(tt.fault), "%+v", tt.outcome)
	}
	assert.Equal(t, results.Cell{Text: notRun}, r.cell("F2"), "it was not tried")

}
