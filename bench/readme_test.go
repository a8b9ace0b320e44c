package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

func read(t *testing.T, elements ...string) string {
	text, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(text)
}

func TestUpdateReadme(t *testing.T) {
	root := clone(t)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "results"), 0o755))
	stale, other := filepath.Join(root, "docs", "results", "gone.svg"), filepath.Join(root, "docs", "results", "notes.txt")
	require.NoError(t, os.WriteFile(stale, []byte(`<svg xmlns="http://www.w3.org/2000/svg" id="chart-gone" width="1"></svg>`), 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))

	for _, from := range []string{root, filepath.Join(root, "bench", "sub")} {
		got := benchIn(t, t.Context(), from, []measure.Section{fake("one"), fake("two")}, "--update-readme", "--seed", "3")
		require.Equal(t, exitDone, got.code, got.err)
		assert.Contains(t, got.out, "README.md\n")

		text := read(t, root, "README.md")
		head, rest, _ := strings.Cut(readmeBefore, "old\n")
		assert.True(t, strings.HasPrefix(text, head), text)
		assert.True(t, strings.HasSuffix(text, rest), text)
		assert.NotContains(t, text, "old")
		assert.Contains(t, text, "All 2 targets met.")
		assert.Contains(t, text, "- `two` was measured. ([chart](docs/results.md#chart-two-chart))")

		whole := read(t, root, "docs", "results.md")
		assert.Contains(t, whole, `<a id="chart-two-chart"></a>`)
		assert.Contains(t, whole, "](results/two-chart.svg)")
		assert.FileExists(t, filepath.Join(root, "docs", "results", "two-chart.svg"))
		assert.NoFileExists(t, stale)
		assert.FileExists(t, other)
	}
}

func TestReadmeIsRefusedWhatIsNotWhole(t *testing.T) {
	measured := false
	section := func(s measure.Section) []measure.Section {
		return []measure.Section{with("one", func(ctx context.Context, run *measure.Run) results.Section {
			measured = true
			return s.Measure(ctx, run)
		})}
	}
	for _, test := range []struct {
		name, readme string
		code         int
		measured     bool
		want         string
	}{
		{"no marks", "# A library\n", exitFailed, false, beginMark},
		{"no end", "# A\n" + beginMark + "\n", exitFailed, false, endMark},
		{"two", readmeBefore + readmeBefore, exitFailed, false, "2 times"},
		{"the wrong way round", endMark + "\n" + beginMark + "\n", exitFailed, false, "before"},
	} {
		measured = false
		root := clone(t)
		require.NoError(t, os.WriteFile(filepath.Join(root, "README.md"), []byte(test.readme), 0o644))
		got := benchIn(t, t.Context(), root, section(fake("one")), "--update-readme")
		assert.Equal(t, test.code, got.code, test.name)
		assert.Equal(t, test.measured, measured, "%s: found out too late", test.name)
		assert.Contains(t, got.err, test.want, test.name)
		assert.Equal(t, test.readme, read(t, root, "README.md"), test.name)
	}

	// What goes wrong while it runs.
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	for _, test := range []struct {
		name    string
		measure func(context.Context, *measure.Run) results.Section
		code    int
		want    string
	}{
		{"failed", func(context.Context, *measure.Run) results.Section { panic("x") }, exitFailed, "sections that failed: 1"},
		{"interrupted", func(ctx context.Context, run *measure.Run) results.Section {
			interrupt(&interruption{syscall.SIGTERM})
			return fake("one").Measure(ctx, run)
		}, exitSignal + int(syscall.SIGTERM), "the run was interrupted"},
	} {
		root := clone(t)
		got := benchIn(t, ctx, root, []measure.Section{with("one", test.measure)}, "--update-readme")
		assert.Equal(t, test.code, got.code, test.name)
		assert.Contains(t, got.out, "index.html", "%s: the summary", test.name)
		assert.Contains(t, got.err, test.want, test.name)
		assert.Equal(t, readmeBefore, read(t, root, "README.md"), test.name)
		assert.NoFileExists(t, filepath.Join(root, "docs", "results.md"), test.name)
		assert.FileExists(t, filepath.Join(got.folder, "index.html"), "%s: the report itself is written", test.name)
	}
	root := clone(t)
	require.Error(t, updateReadme(root, &results.Report{Quick: true}, 0))
	assert.Equal(t, readmeBefore, read(t, root, "README.md"))
}
