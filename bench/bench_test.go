package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/bench/service"
	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/internal/cli"
)

func TestMain(m *testing.M) {
	service.Empty()
	fleet.Main(m)
}

// A quick run fills every cell of every section, but for those of servers that are not installed,
// and no ID comes twice where it must not.
func TestQuick(t *testing.T) {
	args := []string{"--quick", "--seed", "7", "--out", t.TempDir()}
	if testing.Short() {
		args = append(args, "--only", "cost,ceiling,scaling,latency,waste")
	}
	short := sections()
	for i := range short {
		short[i].Quick = time.Millisecond // one round of each
	}
	var said bytes.Buffer
	code := execute(t.Context(), program{sections: short, out: &said, err: &said}, args)
	require.Equal(t, cli.Done, code, said.String())
	r, err := report.Read(filepath.Join(args[4], "report.json"))
	require.NoError(t, err)
	for _, name := range []string{"index.html", "report.txt"} {
		text, err := os.ReadFile(filepath.Join(args[4], name))
		require.NoError(t, err)
		assert.NotEmpty(t, text, name)
	}
	for _, s := range r.Sections {
		notes := strings.Join(s.Notes, "\n")
		if strings.Contains(notes, "does not run here") || s.Skipped != "" && s.ID != "kernel" {
			require.NotEqual(t, "1", os.Getenv("TICKFLAKE_REQUIRE_SERVERS"), "%s: %s %s", s.ID, s.Skipped, notes)
			continue
		}
		assert.NotContains(t, notes, "failed", s.ID)
		for _, table := range s.Tables {
			require.NotEmpty(t, table.Rows, table.ID)
			for _, row := range table.Rows {
				for i, c := range row.Cells {
					unknown := []string{"index", "twice"} // may be empty
					assert.True(t, len(c.Samples) > 0 || c.Text != "" || slices.Contains(unknown, table.Columns[i].ID), "%s, %s, %s is empty", table.ID, row.Name, table.Columns[i].ID)
				}
			}
		}
		for _, target := range s.Targets {
			assert.NotEqual(t, "not measured", target.Open, target.ID)
		}
	}
	if twice := r.Section("faults").Table("faults-duplicates"); len(twice.Rows) > 0 {
		assert.Equal(t, "0", twice.Cell("tickflake default, mono, lease", "F11").Text)
		assert.Positive(t, twice.Cell("tickflake default, mono", "F11").Median(), "a fixed node number keeps nothing across a restart")
	}
	for _, row := range r.Section("ways").Table("ways").Rows {
		assert.NotEqual(t, report.Bad, row.Cells[3].Mark, row.Name)
	}
}

// The verdicts of the stored run are those of its cells, and docs/results.md and the table of the
// README are rendered from it. After a change of a template or a verdict, run
// "go run ./bench --from docs/results.json --publish".
func TestStoredRun(t *testing.T) {
	r, err := report.Read("../docs/results.json")
	require.NoError(t, err)
	p := program{sections: sections()}
	require.NoError(t, p.publishable(r))
	for _, s := range sections() {
		stored := r.Section(s.ID)
		assert.NotEmpty(t, stored.Verdict, s.ID)
		assert.Equal(t, stored.Verdict, s.Verdict(*stored), s.ID)
	}
	files, err := published(r)
	require.NoError(t, err)
	charts, err := filepath.Glob("../docs/results/*")
	require.NoError(t, err)
	assert.Len(t, files, 3+len(charts))
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), name)
	}
	for _, spoil := range []func(*report.Report){
		func(r *report.Report) { r.Sections[1].Stolen = 2 }, func(r *report.Report) { r.Quick = true }, func(r *report.Report) { r.Interrupted = true },
		func(r *report.Report) { r.Sections[1].Failed = true }, func(r *report.Report) { r.Sections = r.Sections[:1] },
	} {
		spoiled := *r
		spoiled.Sections = slices.Clone(r.Sections)
		spoil(&spoiled)
		assert.ErrorContains(t, p.publishable(&spoiled), "--publish: docs/results.md is unchanged")
	}
}

// The failure of one section, or the end of the run by a signal, leaves the results of the others.
func TestFailuresStayAtHome(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	section := func(id string, do func()) measure.Section {
		return measure.Section{ID: id, Title: id, Full: time.Second, Verdict: func(report.Section) string { return "" },
			Measure: func(context.Context, *measure.Run) (s report.Section) { do(); s.Note("measured"); return s }}
	}
	dir := t.TempDir()
	var said bytes.Buffer
	code := execute(ctx, program{out: &said, err: &said, sections: []measure.Section{
		section("one", func() {}), section("two", func() { panic("no such server") }),
		section("three", func() { interrupt(cli.Interruption{Signal: syscall.SIGINT}) }), section("four", func() {}),
	}}, []string{"--out", dir})
	assert.Equal(t, 130, code, said.String())
	r, err := report.Read(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	assert.True(t, r.Interrupted)
	assert.Equal(t, []string{"measured"}, r.Section("one").Notes)
	assert.Equal(t, "it failed: panic: no such server", r.Section("two").Skipped)
	assert.Equal(t, "the run was interrupted before", r.Section("four").Skipped)
}
