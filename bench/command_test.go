package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/page"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/cli"
)

func TestRunWritesTheReport(t *testing.T) {
	sections := []measure.Section{fake("one"), fake("two")}
	got := bench(t, sections, "--seed", "7")
	require.Equal(t, cli.Done, got.code, got.err)
	r := got.report(t)
	assert.Equal(t, "go run ./bench --seed 7", r.Command)
	assert.EqualValues(t, 7, r.Seed)
	assert.False(t, r.Interrupted || r.Quick)
	assert.Positive(t, r.Seconds)
	assert.NotEmpty(t, r.Machine.Go)
	require.Len(t, r.Sections, 2)
	assert.Equal(t, "Section one", r.Sections[0].Title)
	assert.Equal(t, "`one` was measured.", r.Sections[0].Verdict)
	assert.EqualValues(t, 40, r.Sections[0].Tables[0].Rows[0].Cells[0].Samples[2], "the full budget")

	for _, name := range []string{"index.html", "report.md", "charts/one-chart.svg", "charts/two-chart.svg"} {
		text, err := os.ReadFile(filepath.Join(got.folder, name))
		require.NoError(t, err)
		assert.NotEmpty(t, text)
	}
	assert.Contains(t, got.out, "one was measured.")
	assert.Contains(t, got.out, filepath.Join("bench", "report", "index.html")+"\n")
	assert.Equal(t, "1/2 one: Section one (about 1m20s left)\n2/2 two: Section two (about 40s left)\n", got.err)
}

// The seed makes the order again, whichever other sections there are.
func TestSeed(t *testing.T) {
	order := func(args ...string) []float64 {
		r := bench(t, []measure.Section{fake("one"), fake("two")}, args...).report(t)
		return r.Sections[len(r.Sections)-1].Tables[0].Rows[0].Cells[0].Samples[:2]
	}
	assert.Equal(t, order("--seed", "5"), order("--seed", "5", "--only", "two"))
	assert.NotEqual(t, order("--seed", "5"), order("--seed", "6"))
	assert.NotEqual(t, order(), order(), "without a seed, each run has its own")
}

// --out may name a folder that has other things in it, under any name.
func TestOutLeavesOthersFilesAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [b")
	theirs := filepath.Join(dir, "charts", "logo.svg")
	require.NoError(t, os.MkdirAll(filepath.Dir(theirs), 0o755))
	require.NoError(t, os.WriteFile(theirs, []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="1"></svg>`), 0o600))
	for range 2 {
		got := bench(t, []measure.Section{fake("one"), fake("two")}, "--out", dir)
		require.Equal(t, cli.Done, got.code, got.err)
		assert.FileExists(t, theirs)
		assert.FileExists(t, filepath.Join(dir, "charts", "two-chart.svg"))
	}
	got := bench(t, []measure.Section{fake("one")}, "--out", dir)
	require.Equal(t, cli.Done, got.code, got.err)
	assert.FileExists(t, theirs)
	assert.NoFileExists(t, filepath.Join(dir, "charts", "two-chart.svg"), "of a run before")
}

// render writes the files of a run again, and --publish writes them into docs.
func TestRenderAndPublish(t *testing.T) {
	sections := []measure.Section{fake("one"), fake("two")}
	root := clone(t)
	first := benchIn(t, t.Context(), root, sections)
	require.Equal(t, cli.Done, first.code, first.err)
	report := filepath.Join(first.folder, "report.json")
	r, err := results.ReadFile(report)
	require.NoError(t, err)
	r.Machine.Stolen = 0 // whatever it was here
	save := func() {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(report, text, 0o600))
	}
	save()
	old := filepath.Join(root, "docs", "results", "old.svg")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o755))
	chart, err := os.ReadFile(filepath.Join(first.folder, "charts", "one-chart.svg"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(old, chart, 0o600))

	again := t.TempDir()
	got := benchIn(t, t.Context(), root, sections, "render", report, "--out", again, "--publish")
	require.Equal(t, cli.Done, got.code, got.err)
	assert.FileExists(t, filepath.Join(again, "index.html"))
	published := filepath.Join(root, "docs", "results.md")
	text, err := os.ReadFile(published)
	require.NoError(t, err)
	assert.Contains(t, string(text), "(results/one-chart.svg)")
	assert.FileExists(t, filepath.Join(root, "docs", "results", "one-chart.svg"))
	assert.NoFileExists(t, old, "the chart of an older report")
	same, err := results.ReadFile(filepath.Join(root, "docs", "results.json"))
	require.NoError(t, err)
	assert.Equal(t, r, same)

	for name, spoil := range map[string]func(){
		"2.0% of the processors' time":    func() { r.Machine.Stolen = 2 },
		"a quick run":                     func() { r.Quick = true },
		"interrupted":                     func() { r.Interrupted = true },
		"section two failed":              func() { r.Sections[1].Failed = true },
		"the sections one, where all are": func() { r.Sections = r.Sections[:1] },
	} {
		r, err = results.ReadFile(filepath.Join(root, "docs", "results.json"))
		require.NoError(t, err)
		spoil()
		save()
		require.NoError(t, os.Remove(published))
		got := benchIn(t, t.Context(), root, sections, "render", report, "--out", again, "--publish")
		assert.Equal(t, cli.Failed, got.code, name)
		assert.Contains(t, got.err, name)
		assert.NoFileExists(t, published, name)
		assert.Contains(t, got.out, "Section one", "the summary is there")
		require.NoError(t, os.WriteFile(published, text, 0o600))
	}
}

// docs/results.md is the rendered docs/results.json. After a change of the template, run
// "go run ./bench render docs/results.json --publish".
func TestDocsAreRendered(t *testing.T) {
	r, err := results.ReadFile("../docs/results.json")
	require.NoError(t, err)
	require.NoError(t, program{sections: sections()}.publishable(r))
	var want strings.Builder
	require.NoError(t, page.Markdown(&want, r, "results"))
	got, err := os.ReadFile("../docs/results.md")
	require.NoError(t, err)
	assert.Equal(t, want.String(), string(got))
	charts, err := page.Charts(r)
	require.NoError(t, err)
	files, err := filepath.Glob("../docs/results/*.svg")
	require.NoError(t, err)
	assert.Len(t, files, len(charts))
	for _, name := range files {
		assert.Contains(t, charts, filepath.Base(name))
	}
}
