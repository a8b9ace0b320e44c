package page

import (
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// published returns the report in the repository.
func published(t *testing.T) *results.Report {
	r, err := results.ReadFile("../../docs/results.json")
	require.NoError(t, err)
	return r
}

func rendered(t *testing.T, r *results.Report, form func(io.Writer, *results.Report) error) string {
	var out strings.Builder
	require.NoError(t, form(&out, r))
	return out.String()
}

func markdown(to io.Writer, r *results.Report) error { return Markdown(to, r, "charts") }

// A run from which the hypervisor took much decides no target in any form, and says so first;
// of a section, its targets are open.
func TestUnusable(t *testing.T) {
	r := published(t)
	r.Machine.Stolen = 2
	for name, form := range map[string]func(io.Writer, *results.Report) error{"page": HTML, "Markdown": markdown, "summary": Summary} {
		text := rendered(t, r, form)
		said, target := strings.Index(text, "UNUSABLE"), strings.Index(text, r.Targets()[0].Text)
		require.Positive(t, target, name)
		require.GreaterOrEqual(t, said, 0, name)
		assert.Less(t, said, target, "%s says so at the top", name)
		assert.Contains(t, html.UnescapeString(text), "the hypervisor took 2.0% of the processors' time", name)
		for _, verdict := range []string{"✓ met", "✗ missed", "targets met", "The answer"} {
			assert.NotContains(t, text, verdict, name)
		}
	}

	r = published(t)
	before := r.Targets()
	r.Sections[0].Stolen = 2
	for i, target := range r.Targets() {
		if i < len(r.Sections[0].Targets) {
			assert.Equal(t, results.Open, target.State(), target.ID)
			continue
		}
		assert.Equal(t, before[i].State(), target.State(), target.ID)
	}
	text := rendered(t, r, Summary)
	assert.Contains(t, text, "The section “"+r.Sections[0].Title+"” is unusable")
	answer, _, _ := strings.Cut(rendered(t, r, markdown), "## The run")
	assert.NotContains(t, answer, r.Sections[0].Verdict)
}

// Every figure stands in the row and column of its samples.
func TestTablesMatchTheSamples(t *testing.T) {
	r := published(t)
	tables := map[string][]string{} // rows by table
	id := ""
	for line := range strings.Lines(rendered(t, r, markdown)) {
		if _, rest, ok := strings.Cut(line, `<a id="table-`); ok {
			id, _, _ = strings.Cut(rest, `"`)
		} else if strings.HasPrefix(line, "## ") {
			id = ""
		}
		if strings.HasPrefix(line, "| ") && id != "" {
			tables[id] = append(tables[id], strings.ReplaceAll(line, `\`, ""))
		}
	}
	checked := 0
	for _, s := range r.Sections {
		for _, table := range s.Tables {
			if table.Detail {
				continue
			}
			require.Len(t, tables[table.ID], len(table.Rows)+1, table.ID)
			for i, row := range table.Rows {
				cells := strings.Split(tables[table.ID][i+1], " | ")
				require.Len(t, cells, len(row.Cells)+1, "%s, %s", table.ID, row.Name)
				for k, c := range row.Cells {
					assert.True(t, strings.HasPrefix(cells[k+1], c.Value()), "%s, %s: %q is not %s", table.ID, row.Name, cells[k+1], c.Value())
					checked++
				}
			}
		}
	}
	assert.Greater(t, checked, 300)
}

func TestRatiosToTheBase(t *testing.T) {
	base := []float64{10, 11, 12, 13, 14}
	table := results.Table{Base: "base", Columns: []results.Column{{ID: "x"}}}
	for name, samples := range map[string][]float64{"base": base, "twice": {20, 22, 24, 26, 28}, "alike": {10.5, 11, 12, 13, 14.5}, "few": {20, 22}, "none": nil} {
		table.Rows = append(table.Rows, results.Row{Name: name, Cells: []results.Cell{{Samples: samples}}})
	}
	for _, row := range table.Rows {
		want := map[string]string{"twice": "2×", "alike": "~"}[row.Name]
		assert.Equal(t, want, cells(table, row)[0].Ratio, row.Name)
	}
}

// polygon is a filled area of a bar: M x,y L x,y …
var polygon = regexp.MustCompile(`<path d="M([\d.]+),([\d.]+)L([\d.]+),[\d.]+L[^"]*" style="[^"]*fill:#1A63C6`)

// Bars are as long as their values, and on a logarithmic axis as their logarithms.
func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	table := results.Table{Columns: []results.Column{{ID: "x", Title: "x"}}}
	for _, v := range []float64{10, 20, 100} {
		table.Rows = append(table.Rows, results.Row{Name: fmt.Sprint(v), Group: results.Ours, Cells: []results.Cell{{Samples: []float64{v}}}})
	}
	for _, log := range []bool{false, true} {
		svg, err := drawChart(&table, results.Chart{ID: "c", LogY: log})
		require.NoError(t, err)
		bars := polygon.FindAllStringSubmatch(svg, -1)
		require.Len(t, bars, 3, svg)
		var length []float64
		for _, b := range bars {
			from, _ := strconv.ParseFloat(b[1], 64)
			to, _ := strconv.ParseFloat(b[3], 64)
			length = append(length, to-from)
		}
		want := []float64{1, 2, 10} // times the first
		if log {
			want = []float64{1, 1 + math.Log10(2), 2} // the axis begins at 1
		}
		for i := range want {
			assert.InEpsilon(t, want[i], length[i]/length[0], 0.02, "bar %d, logarithmic: %v", i, log)
		}
	}
}
