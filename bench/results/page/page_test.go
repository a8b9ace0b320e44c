package page_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/internal/specimen"
	"github.com/tickflake/tickflake/bench/results/page"
)

// Whatever is in the report is on the page, and in its twin.
func TestBothFormsSayEverything(t *testing.T) {
	r := specimen.Report(1)
	r.Interrupted, r.Quick = true, true
	r.Machine.LoadBefore[0] = 7
	spaces := regexp.MustCompile(`\s+`)
	for form, text := range map[string]string{"html": html(t, r), "markdown": markdown(t, r)} {
		said := regexp.MustCompile(`<style>(?s:.*?)</style>|<svg(?s:.*?)</svg>|<[^>]*>|[\\*`+"`"+`]`).ReplaceAllString(text, "")
		said = strings.NewReplacer("&#39;", "'", "&amp;", "&", "&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#43;", "+").Replace(said)
		said = spaces.ReplaceAllString(said, " ")
		has := func(what string) {
			t.Helper()
			assert.Contains(t, said, spaces.ReplaceAllString(strings.ReplaceAll(what, "`", ""), " "), form)
		}
		has("4 of 6 targets met, 1 missed, 1 open.")
		has("interrupted")
		has("quick run")
		has("a load of 7.00 on 2 cores")
		has("The hypervisor took 2.5%")
		for _, fact := range []string{r.Machine.CPU, r.Machine.Go, r.Machine.OS, r.Machine.Kernel, r.Machine.Virtual, r.Machine.ClockSource, "8.0 GiB", "2026-03-04 05:06 UTC", "3m7s", r.Command} {
			has(fact)
		}
		for _, s := range r.Sections {
			has(s.Title)
			has(s.About)
			has(s.Command)
			has(s.Skipped)
			for _, text := range append(append([]string{}, s.Verdict...), s.Notes...) {
				has(text)
			}
			for _, target := range s.Targets {
				has(target.Text)
				has(target.Reason())
			}
			for _, table := range s.Tables {
				has(table.Title)
				for _, row := range table.Rows {
					has(row.Note)
				}
			}
			for _, c := range s.Charts {
				has(c.Title)
			}
		}
		for _, id := range []string{"cost", "chart-cost", "table-cost", "index", "chart-index-splits"} {
			assert.Contains(t, text, `id="`+id+`"`, form)
		}
	}
}

func TestRatiosToTheBase(t *testing.T) {
	r := specimen.Report(1)
	rows := r.Sections[0].Tables[0].Rows
	rows[2].Cells[0].Samples = slices.Clone(rows[0].Cells[0].Samples)
	rows[3].Cells[0].Samples = []float64{50}
	g := htmlGrids(t, html(t, r))["cost"]
	assert.NotContains(t, g.Rows[0][1], "×", "the base itself has none")
	assert.Regexp(t, `1\.1\d× \(p<0\.001 n=10\)`, g.Rows[1][1])
	assert.Regexp(t, `~ \(p=1\.000 n=10\)$`, g.Rows[2][1])
	assert.Equal(t, "50", g.Rows[3][1], "of one sample nobody can tell")
	assert.Equal(t, "1", g.Rows[1][2], "nothing is a multiple of 0")
	assert.Equal(t, "0", g.Rows[2][2], "counts that are the same need no test")
	assert.Equal(t, "64", g.Rows[2][3], "texts are not compared")
}

func TestPageNeedsNothingElse(t *testing.T) {
	text := html(t, specimen.Report(1))
	for _, found := range regexp.MustCompile(`(?:src|href|url|@import)\s*[=(]?\s*["'(]?([^"')\s>]+)`).FindAllStringSubmatch(text, -1) {
		target := found[1]
		assert.True(t, strings.HasPrefix(target, "#") || strings.HasPrefix(target, "data:") || !strings.Contains(target, "/"), found[0])
	}
	outside := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
	assert.NotContains(t, outside, "http://")
	assert.NotContains(t, outside, "https://")
	assert.Contains(t, text, "default-src 'none'")
}

func TestNamesAreOnlyText(t *testing.T) {
	r := specimen.Report(1)
	s := &r.Sections[0]
	evil := `<script>alert("x")</script>|*_[a](b)`
	s.Title, s.About, s.Verdict[0], s.Tables[0].Rows[2].Name, s.Charts[0].Title, s.Tables[0].Columns[0].Title = evil, evil, evil, evil, evil, evil
	s.Tables[0].Rows[3].Note, s.Tables[0].Rows[1].Cells[2].Text, s.Targets[0].Text = evil, evil, evil
	for form, text := range map[string]string{"html": html(t, r), "markdown": markdown(t, r), "readme": page.Readme(r, "docs/results.md")} {
		assert.NotContains(t, text, "<script>alert", form)
		if form != "html" {
			assert.NotRegexp(t, `[^\\]\[a\]\(b\)`, text, form)
		}
	}
	checkAll(t, r, htmlGrids(t, html(t, r)))
	checkAll(t, r, markdownGrids(markdown(t, r)))
}

func TestMarkdownShowsEveryChartThatIsThere(t *testing.T) {
	r := specimen.Report(1)
	charts, err := page.Charts(r)
	require.NoError(t, err)
	text := markdown(t, r)
	for _, c := range charts {
		assert.Contains(t, text, "](charts/"+c.Name+")")
		assert.Contains(t, c.SVG, "<svg ")
	}
	assert.Equal(t, len(charts), strings.Count(text, "](charts/"))
	assert.Len(t, charts, 8, "all but the one for which nothing was measured")
	assert.Contains(t, text, "nothing was measured for this chart")
}

func TestReadmeLinksWhatItClaims(t *testing.T) {
	r := specimen.Report(1)
	text := page.Readme(r, "docs/results.md")
	whole := markdown(t, r)
	links := regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(text, -1)
	for _, link := range links {
		file, id, _ := strings.Cut(link[1], "#")
		assert.Equal(t, "docs/results.md", file)
		assert.Contains(t, whole, `<a id="`+id+`"></a>`, "a link leads nowhere")
	}
	claims := 0
	for _, s := range r.Sections {
		claims += 1 + len(s.Verdict) + len(s.Targets)
	}
	assert.Len(t, links, claims)
	assert.Contains(t, text, r.Machine.CPU)
	assert.Contains(t, text, "A peer wins nowhere in this table. ([chart](docs/results.md#chart-cost))")
	assert.Contains(t, text, "5 of 8 peers did. ([table](docs/results.md#table-faults))")
	assert.Contains(t, text, "> The hypervisor took 2.5% of the processors' time", "what the reader has to know before the figures")
}

func TestText(t *testing.T) {
	r := specimen.Report(1)
	text := page.Text(r)
	assert.Contains(t, text, "✓ met     Next at most 1.25 × the floor: 1.1")
	assert.Contains(t, text, "✗ missed  p99.9 at 1M IDs/s at most 2 × that of the empty loop: 2.")
	assert.Contains(t, text, "The hypervisor took the processor away")
	assert.Contains(t, text, "skipped: no server is installed")
	assert.Equal(t, 1, strings.Count(text, "no server is installed"))
	assert.NotContains(t, text, "`")
}

// Whatever can be read can be shown.
func FuzzShow(f *testing.F) {
	small := specimen.Report(1)
	small.Sections = small.Sections[5:8]
	seed, err := json.Marshal(small)
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte(`{"schema":1,"sections":[{"id":"a","tables":[{"id":"t","columns":[{"id":"c"}],"rows":[{"name":"r","cells":[{"samples":[1e300,-1e300]}]}]}],"charts":[{"id":"x","kind":"bars","table":"t","logY":true}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := results.Read(bytes.NewReader(text))
		if err != nil {
			t.Skip("not a report")
		}
		html(t, r)
		markdown(t, r)
		page.Readme(r, "x.md")
		page.Text(r)
	})
}
