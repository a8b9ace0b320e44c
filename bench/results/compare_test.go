package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// one is a report with a table of one column, which has a row per cell.
func one(better results.Better, cells ...results.Cell) *results.Report {
	table := results.Table{ID: "t", Title: "Times", RowName: "case", Columns: []results.Column{{ID: "ns", Title: "time", Unit: "ns", Better: better}}}
	for i, cell := range cells {
		table.Rows = append(table.Rows, results.Row{Name: string(rune('a' + i)), Cells: []results.Cell{cell}})
	}
	return &results.Report{Schema: results.Schema, Sections: []results.Section{{ID: "s", Tables: []results.Table{table}}}}
}

func samples(values ...float64) results.Cell { return results.Cell{Samples: values} }

func compare(t *testing.T, before, after *results.Report) string {
	var out strings.Builder
	require.NoError(t, results.Compare(&out, before, after))
	return out.String()
}

func TestCompareKnownSamples(t *testing.T) {
	before := one(results.Less, samples(10, 11, 12, 13, 14), samples(10, 11, 12, 13, 14))
	after := one(results.Less, samples(5, 5.5, 6, 6.5, 7), samples(10, 11, 12, 13, 14.5), samples(1))
	out := compare(t, before, after)
	assert.Regexp(t, `(?m)^  a +12 ±17% +6 ±17% +-50\.0% \(p=0\.008 n=5\) better$`, out)
	assert.Regexp(t, `(?m)^  b +12 ±17% +12 ±21% +~ \(p=0\.\d+ n=5\)$`, out)
	assert.Regexp(t, `(?m)^  \(geometric mean of 2\) +-29\.3%$`, out, "of a half and one")
	assert.Contains(t, out, "1 of 2 cells differ significantly")
	assert.Contains(t, out, `only after: "c" in table "Times"`)
	assert.NotContains(t, out, "only before")
	assert.NotContains(t, out, "warning")
}

func TestCompareKnowsWhichWayIsBetter(t *testing.T) {
	low, high := samples(1, 2, 3, 4, 5), samples(11, 12, 13, 14, 15)
	for _, test := range []struct {
		better        results.Better
		before, after results.Cell
		want          string
	}{
		{results.Less, low, high, ") worse"},
		{results.Less, high, low, ") better"},
		{results.More, low, high, ") better"},
		{results.More, high, low, ") worse"},
		{results.Neither, low, high, ")\n"},
	} {
		assert.Contains(t, compare(t, one(test.better, test.before), one(test.better, test.after)), test.want)
	}
}

func TestCompareTexts(t *testing.T) {
	kept, lost := results.Cell{Text: "✓ kept"}, results.Cell{Text: "✗ 3 duplicates"}
	out := compare(t, one("", kept, kept, samples(1, 2)), one("", kept, lost, results.Cell{}))
	assert.Regexp(t, `b +✓ kept +✗ 3 duplicates +changed`, out)
	assert.Regexp(t, `c +1\.500 +– +changed`, out)
	assert.NotRegexp(t, `(?m)^  a`, out)
	assert.Contains(t, out, "(cells that are the same in both: 1)")
}

// Too few samples cannot differ significantly, and are not counted among those that chance
// makes differ.
func TestCompareOfFewSamples(t *testing.T) {
	out := compare(t, one(results.Less, samples(3), samples(4, 4), samples(1, 2, 3)), one(results.Less, samples(9), samples(4, 4, 4), samples(7, 8, 9)))
	assert.Regexp(t, `(?m)^  a +3 +9 +not tested \(n=1\)$`, out)
	assert.Regexp(t, `(?m)^  c +2 ±50% +8 ±12% +not tested \(n=3\)$`, out)
	assert.Contains(t, out, "(cells that are the same in both: 1)")
	assert.Contains(t, out, "0 of 0 cells differ significantly")
}

func TestCompareWarns(t *testing.T) {
	before, after := specimen(t), specimen(t)
	after.Machine.CPU, after.Machine.Cores, after.Machine.ClockSource = "Other", 64, "hpet"
	after.Quick, before.Interrupted = true, true
	out := compare(t, before, after)
	assert.Equal(t, 5, strings.Count(out, "warning: "))
	assert.Contains(t, out, `warning: the clock source differs: "tsc" before, "hpet" after`)
	assert.Contains(t, out, "warning: the run before was interrupted")
	assert.Contains(t, out, "warning: the run after was a quick one")
}

// A report does not differ from itself, and its targets are compared too.
func TestCompareWithItself(t *testing.T) {
	out := compare(t, specimen(t), specimen(t))
	assert.Regexp(t, `\n0 of \d{3} cells differ significantly`, out)
	assert.NotContains(t, out, "only ")
	assert.NotContains(t, out, "changed")
	assert.Contains(t, out, specimen(t).Targets()[0].Text)
}

func TestCompareSaysWhatIsMissing(t *testing.T) {
	before, after := specimen(t), specimen(t)
	after.Sections = after.Sections[1:]
	before.Sections[1].Tables[0].Columns[3].ID = "old"
	out := compare(t, before, after)
	assert.Contains(t, out, `only before: table "One ID, one goroutine"`)
	assert.Contains(t, out, `only before: column "`+specimen(t).Targets()[0].Text+`" of table "Targets"`)
	assert.Contains(t, out, `only before: column "64 goroutines" of table "Share of the format's ceiling"`)
	assert.Contains(t, out, `only after: column "64 goroutines" of table "Share of the format's ceiling"`)
}
