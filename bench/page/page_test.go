package page

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
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

// headline says how many targets were met. The figures of the published run change.
func headline(r *results.Report) string {
	met := 0
	for _, target := range r.Targets() {
		if target.State() == results.Met {
			met++
		}
	}
	return fmt.Sprintf("%d of %d targets met", met, len(r.Targets()))
}

func rendered(t *testing.T, r *results.Report, form func(io.Writer, *results.Report) error) string {
	var out strings.Builder
	require.NoError(t, form(&out, r))
	return out.String()
}

func markdown(to io.Writer, r *results.Report) error { return Markdown(to, r, "charts") }

// The page says everything, and Markdown everything but the tables of details.
func TestFormsSayEverything(t *testing.T) {
	r := published(t)
	r.Quick, r.Interrupted, r.Machine.Stolen = true, true, 1.9
	r.Sections[6].Skipped = "No server runs here."
	page, text := html.UnescapeString(rendered(t, r, HTML)), strings.ReplaceAll(rendered(t, r, markdown), `\`, "")
	text = html.UnescapeString(text)
	both := []string{headline(r), "quick run", "interrupted", "1.9%", view{r, ""}.Asked(), "func init() {", r.Commit, r.Machine.CPU, "Skipped: No server runs here."}
	for _, target := range r.Targets() {
		both = append(both, target.Text, target.Limit(), target.Value())
	}
	for _, s := range r.Sections {
		both = append(both, s.Title, s.About, s.Verdict)
		both = append(both, s.Notes...)
		for _, table := range s.Tables {
			says := func(what string) {
				assert.Contains(t, page, what, table.ID)
				assert.Equal(t, !table.Detail, strings.Contains(text, "table-"+table.ID+`"`), table.ID)
				if !table.Detail {
					assert.Contains(t, text, what, table.ID)
				}
			}
			says(table.Title)
			for _, c := range table.Columns {
				says(c.Title)
			}
			for _, row := range table.Rows {
				says(row.Name)
				says(row.Note)
				for _, c := range row.Cells {
					says(c.Value())
					says(c.Margin())
				}
			}
		}
	}
	for _, what := range both {
		assert.Contains(t, page, what)
		assert.Contains(t, text, what)
	}
}

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
	answer, _, _ := strings.Cut(rendered(t, r, markdown), "Targets")
	assert.NotContains(t, answer, r.Sections[0].Verdict)
}

// The chart that opens the report has Next and the peers that are not at their ceiling.
func TestOpening(t *testing.T) {
	r := published(t)
	opening := view{r, ""}.Opening()
	var names []string
	for _, row := range opening.Rows {
		names = append(names, row.Name)
	}
	assert.Contains(t, names, "Next")
	assert.Contains(t, names, "rs/xid")
	assert.NotContains(t, names, "sony/sonyflake")
	assert.Contains(t, charts(t, r), openingID+".svg")
	require.NotEmpty(t, view{r, ""}.Answers())

	cost := r.Sections[0].Table("cost")
	for i := range cost.Rows {
		cost.Rows[i].Cells[2] = results.Cell{Text: "disturbed"}
	}
	assert.Equal(t, "ns", view{r, ""}.Opening().Columns[0].ID, "no round counts")
	r.Sections = r.Sections[1:]
	assert.Empty(t, view{r, ""}.Opening().Rows)
	assert.NotContains(t, rendered(t, r, markdown), openingID+".svg")
}

// Every figure stands in the row and column of its samples.
func TestTablesMatchTheSamples(t *testing.T) {
	r := published(t)
	tables := map[string][]string{} // rows by table
	id := ""
	for line := range strings.Lines(rendered(t, r, markdown)) {
		if _, rest, ok := strings.Cut(line, `<a id="table-`); ok {
			id, _, _ = strings.Cut(rest, `"`)
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
	assert.Greater(t, checked, 500)
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

// A text of the report is a text in every form, whatever it has in it.
func TestTextsAreOnlyText(t *testing.T) {
	const evil = `<script>alert(1)</script> a|b **c** [d](e)`
	r := published(t)
	r.Sections[0].Tables[0].Rows[1].Name, r.Sections[0].Tables[0].Base = evil, evil
	r.Sections[0].Verdict, r.Sections[0].Tables[0].Title = evil, evil
	assert.NotContains(t, rendered(t, r, HTML), "<script>alert")
	text := rendered(t, r, markdown)
	assert.NotContains(t, text, "<script>")
	assert.Contains(t, text, `a\|b \*\*c\*\* \[d\](e)`)
	for name, svg := range charts(t, r) {
		assert.NotContains(t, svg, "<script>", name)
		wellFormed(t, svg)
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	text := rendered(t, published(t), HTML)
	assert.NotRegexp(t, `(src|href)="[^#d]`, text, "but links within the page, and the empty icon")
	assert.NotContains(t, text, "@import")
	assert.NotContains(t, text, "url(")
	assert.NotRegexp(t, `#[0-9A-F]{6}`, text[strings.Index(text, "</style>"):], "a colour that does not follow the theme")
}

func TestSummary(t *testing.T) {
	r := published(t)
	r.Sections[7].Skipped = "Neither `PostgreSQL` nor MariaDB runs here."
	text := rendered(t, r, Summary)
	assert.Contains(t, text, headline(r))
	for _, target := range r.Targets() {
		mark := map[results.State]string{results.Met: "✓ met     ", results.Missed: "✗ missed  "}[target.State()]
		assert.Contains(t, text, mark+target.Text+": "+target.Value())
	}
	assert.Contains(t, text, "skipped: Neither PostgreSQL nor MariaDB runs here.")
	assert.Contains(t, text, r.Sections[0].Verdict)
}

func charts(t *testing.T, r *results.Report) map[string]string {
	all, err := Charts(r)
	require.NoError(t, err)
	return all
}

func wellFormed(t *testing.T, svg string) {
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

// Markdown shows exactly the charts that there are, each with all its rows.
func TestCharts(t *testing.T) {
	r := published(t)
	r.Sections[0].Tables[0].Charts[0].Columns = []string{"ceiling"} // which has no samples
	text, all := rendered(t, r, markdown), charts(t, r)
	var shown []string
	for _, match := range regexp.MustCompile(`\(charts/([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, match[1])
	}
	slices.Sort(shown)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	assert.Equal(t, names, shown)
	assert.NotContains(t, names, "cost.svg")
	for _, s := range r.Sections {
		for _, table := range s.Tables {
			for _, c := range table.Charts {
				svg, ok := all[c.ID+".svg"]
				if !ok {
					continue
				}
				assert.True(t, IsChart(svg))
				wellFormed(t, svg)
				for _, row := range table.Rows {
					assert.Contains(t, html.UnescapeString(svg), row.Name, c.ID)
				}
			}
		}
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

// A value that a logarithmic axis cannot show has no bar, and no figure breaks a chart.
func TestFiguresOfAnySize(t *testing.T) {
	for _, values := range [][]float64{{0}, {0, 5}, {-3, 4}, {1e-300, 1e300}, {7}, {math.MaxFloat64}} {
		table := results.Table{Columns: []results.Column{{ID: "a", X: 1}, {ID: "b", X: 2}}}
		for i, v := range values {
			table.Rows = append(table.Rows, results.Row{Name: fmt.Sprint(i), Cells: []results.Cell{{Samples: []float64{v}}, {}}})
		}
		for _, c := range []results.Chart{{LogY: true}, {}, {Lines: true}, {Lines: true, LogX: true, LogY: true}} {
			svg, err := drawChart(&table, c)
			require.NoError(t, err)
			assert.NotContains(t, svg, "NaN", "%v %+v", values, c)
			wellFormed(t, svg)
		}
	}
}
