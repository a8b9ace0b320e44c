package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/internal/specimen"
)

// one is a report with a table of one column, which has a row per cell.
func one(better results.Better, cells map[string]results.Cell) *results.Report {
	table := results.Table{ID: "t", Title: "Times", RowName: "case", Columns: []results.Column{{ID: "ns", Title: "time", Unit: "ns", Better: better}}}
	for _, name := range []string{"a", "b", "c"} {
		if cell, ok := cells[name]; ok {
			table.Rows = append(table.Rows, results.Row{Name: name, Cells: []results.Cell{cell}})
		}
	}
	return &results.Report{Schema: results.Schema, Sections: []results.Section{{ID: "s", Tables: []results.Table{table}}}}
}

func samples(values ...float64) results.Cell { return results.Cell{Samples: values} }

func TestCompareKnownSamples(t *testing.T) {
	before := one(results.Less, map[string]results.Cell{"a": samples(10, 11, 12, 13, 14), "b": samples(10, 11, 12, 13, 14)})
	after := one(results.Less, map[string]results.Cell{"a": samples(5, 5.5, 6, 6.5, 7), "b": samples(10, 11, 12, 13, 14.5), "c": samples(1)})
	c := results.Compare(before, after)
	require.Len(t, c.Tables, 2, "that of the targets, and the one")
	cells := c.Tables[1].Cells
	require.Len(t, cells, 2)
	assert.Equal(t, "-50.0%", cells[0].Difference.Percent())
	assert.Equal(t, "better", cells[0].Verdict())
	assert.Equal(t, "~", cells[1].Difference.Percent())
	assert.Empty(t, cells[1].Verdict())
	require.Len(t, c.Tables[1].Means, 1)
	assert.InDelta(t, 0.7071, c.Tables[1].Means[0].Ratio, 1e-4, "of a half and one")
	assert.Equal(t, []string{`"c" in table "Times"`}, c.OnlyAfter)
	assert.Empty(t, c.OnlyBefore)
	assert.Empty(t, c.Warnings)

	var out strings.Builder
	require.NoError(t, c.Write(&out))
	assert.Regexp(t, `(?m)^  a +12 ±17% +6 ±17% +-50\.0% \(p=0\.008 n=5\) better$`, out.String())
	assert.Regexp(t, `(?m)^  b +12 ±17% +12 ±21% +~ \(p=0\.\d+ n=5\)$`, out.String())
	assert.Regexp(t, `(?m)^  \(geometric mean of 2\) +-29\.3%$`, out.String())
	assert.Contains(t, out.String(), "1 of 2 cells differ significantly")
}

func TestCompareKnowsWhichWayIsBetter(t *testing.T) {
	low, high := samples(1, 2, 3, 4, 5), samples(11, 12, 13, 14, 15)
	for _, test := range []struct {
		better        results.Better
		before, after results.Cell
		want          string
	}{
		{results.Less, low, high, "worse"},
		{results.Less, high, low, "better"},
		{results.More, low, high, "better"},
		{results.More, high, low, "worse"},
		{results.Neither, low, high, ""},
	} {
		c := results.Compare(one(test.better, map[string]results.Cell{"a": test.before}), one(test.better, map[string]results.Cell{"a": test.after}))
		assert.Equal(t, test.want, c.Tables[1].Cells[0].Verdict())
		assert.Empty(t, c.Tables[1].Means, "of one row")
	}
}

func TestCompareTexts(t *testing.T) {
	kept, lost := results.Cell{Text: "kept", Mark: results.Good}, results.Cell{Text: "3 duplicates", Mark: results.Bad}
	before := one("", map[string]results.Cell{"a": kept, "b": kept, "c": samples(1, 2)})
	after := one("", map[string]results.Cell{"a": kept, "b": lost, "c": {}})
	var out strings.Builder
	require.NoError(t, results.Compare(before, after).Write(&out))
	assert.Regexp(t, `b +✓ kept +✗ 3 duplicates +changed`, out.String())
	assert.Regexp(t, `c +1\.500 +– +changed`, out.String())
	assert.NotRegexp(t, `(?m)^  a`, out.String())
	assert.Contains(t, out.String(), "(cells that are the same in both: 1)")
}

func TestCompareOneSampleIsNoTest(t *testing.T) {
	var out strings.Builder
	c := results.Compare(one(results.Less, map[string]results.Cell{"a": samples(3), "b": samples(4, 4)}), one(results.Less, map[string]results.Cell{"a": samples(9), "b": samples(4, 4, 4)}))
	require.NoError(t, c.Write(&out))
	assert.Regexp(t, `(?m)^  a +3 +9 +not tested \(n=1\)$`, out.String())
	assert.Contains(t, out.String(), "0 of 0 cells differ significantly")
	assert.Equal(t, 1, c.Tables[1].Same)
}

// Of three samples and three, no test can say that they differ: so they are not among
// those of which one in twenty would by chance.
func TestCompareTooFewSamplesIsNoTest(t *testing.T) {
	var out strings.Builder
	c := results.Compare(one(results.Less, map[string]results.Cell{"a": samples(1, 2, 3)}), one(results.Less, map[string]results.Cell{"a": samples(7, 8, 9)}))
	require.NoError(t, c.Write(&out))
	assert.Regexp(t, `(?m)^  a +2 ±50% +8 ±12% +not tested \(n=3\)$`, out.String())
	assert.Contains(t, out.String(), "0 of 0 cells differ significantly")
}

func TestCompareWarns(t *testing.T) {
	before, after := specimen.Report(1), specimen.Report(2)
	after.Machine.CPU, after.Machine.Cores, after.Machine.ClockSource = "Other", 64, "hpet"
	after.Quick, before.Interrupted = true, true
	c := results.Compare(before, after)
	assert.Len(t, c.Warnings, 5)
	var out strings.Builder
	require.NoError(t, c.Write(&out))
	assert.Contains(t, out.String(), `warning: the clock source differs: "tsc" before, "hpet" after`)
	assert.Contains(t, out.String(), "warning: the run before was interrupted")
	assert.Contains(t, out.String(), "warning: the run after was a quick one")
}

// A report does not differ from itself, and all of it is compared.
func TestCompareWithItself(t *testing.T) {
	r := specimen.Report(1)
	c := results.Compare(r, r)
	measured := 0
	for _, table := range c.Tables {
		measured += table.Same
		for _, cell := range table.Cells {
			require.True(t, cell.Measured)
			require.False(t, cell.Difference.Significant(), "%s", cell.Row)
			measured++
		}
		for _, m := range table.Means {
			require.InDelta(t, 1, m.Ratio, 1e-9)
		}
	}
	want := 0
	for _, s := range r.Sections {
		for _, target := range s.Targets {
			want += min(len(target.Got.Samples), 1)
		}
		for _, table := range s.Tables {
			for _, row := range table.Rows {
				for _, cell := range row.Cells {
					if len(cell.Samples) > 0 || cell.Text != "" {
						want++
					}
				}
			}
		}
	}
	assert.Equal(t, want, measured)
	assert.Empty(t, c.OnlyBefore)
	assert.Empty(t, c.OnlyAfter)
}

func TestCompareSaysWhatIsMissing(t *testing.T) {
	before, after := specimen.Report(1), specimen.Report(1)
	after.Sections = after.Sections[1:]
	before.Sections[1].Tables[0].Columns[4].ID = "old"
	c := results.Compare(before, after)
	assert.Contains(t, c.OnlyBefore, `table "Time per ID"`)
	assert.Contains(t, c.OnlyBefore, "target \"`Next` at most 1.25 × the floor\"")
	assert.Contains(t, c.OnlyBefore, `column "cores" of table "At 4096 per millisecond"`)
	assert.Equal(t, []string{`column "cores" of table "At 4096 per millisecond"`}, c.OnlyAfter)
}
