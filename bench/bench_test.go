package main

import (
	"bytes"
	"context"
	"io"
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
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/internal/cli"
)

func TestMain(m *testing.M) { program.Main(m) }

// A quick run fills every cell of every section, but for those of servers that are not installed,
// and no ID comes twice where it must not.
func TestQuick(t *testing.T) {
	var said bytes.Buffer
	p := command{sections: sections(), out: &said, err: &said, quick: true, folder: t.TempDir()}
	if testing.Short() {
		p.only = []string{"cost", "ceiling", "scaling", "latency", "waste"}
	}
	for i := range p.sections {
		p.sections[i].Quick = time.Millisecond // one round of each
	}
	r := p.measure(t.Context(), "")
	require.NoError(t, p.deliver(r), said.String())
	for _, name := range []string{"report.md", "report.txt"} {
		text, err := os.ReadFile(filepath.Join(p.folder, name))
		require.NoError(t, err)
		assert.NotEmpty(t, text, name)
	}
	assert.Contains(t, said.String(), "(published run)", "a quick run has no time for a real kernel")
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
					assert.True(t, len(c.Samples) > 0 || c.Text != "" || table.Columns[i].ID == "crowd", "%s, %s, %s is empty", table.ID, row.Name, table.Columns[i].ID)
				}
			}
		}
		for _, target := range s.Targets {
			assert.NotEqual(t, "not measured", target.Reason(), target.ID)
		}
	}
	if card := r.Section("faults").Table("faults"); len(card.Rows) > 0 {
		assert.NotContains(t, card.Cell("tickflake, mono, lease", "F11").Text, "duplicate")
		assert.Contains(t, card.Cell("tickflake, mono", "F11").Text, "duplicate", "a fixed node number keeps nothing across a restart")
	}
}

// A run is published only if it is whole and was not disturbed, and the page has its table.
func TestPublishable(t *testing.T) {
	whole := report.Report{Sections: []report.Section{{ID: "one"}, {ID: "two"}}}
	require.NoError(t, publishable(&whole))
	for _, spoil := range []func(*report.Report){
		func(r *report.Report) { r.Sections[1].Stolen = 2 }, func(r *report.Report) { r.Quick = true }, func(r *report.Report) { r.Interrupted = true },
		func(r *report.Report) { r.Sections[1].Skipped = "no server" },
	} {
		spoiled := whole
		spoiled.Sections = slices.Clone(whole.Sections)
		spoil(&spoiled)
		assert.ErrorContains(t, publishable(&spoiled), "--publish: docs/results.md is unchanged")
	}
	assert.Len(t, earlier()["google/uuid v7"], 4, "the first table of docs/results.md")
	require.NoError(t, withTable(io.Discard, filepath.Join(root, "README.md"), &whole), "README.md has a place for the table")
}

// The failure of one section, or the end of the run by a signal, leaves the results of the others.
func TestFailuresStayAtHome(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	section := func(id string, do func()) measure.Section {
		return measure.Section{ID: id, Title: id, Full: time.Second, Measure: func(context.Context, *measure.Run) (s report.Section) { do(); s.Note("measured"); return s }}
	}
	dir := t.TempDir()
	var said bytes.Buffer
	code := execute(ctx, command{out: &said, err: &said, sections: []measure.Section{
		section("one", func() {}), section("two", func() { panic("no such server") }),
		section("three", func() { interrupt(cli.Interruption{Signal: syscall.SIGINT}) }), section("four", func() {}),
	}}, []string{"--out", dir})
	assert.Equal(t, 130, code, said.String())
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(t, err)
	for _, want := range []string{"The run was interrupted", "measured", "Skipped: it failed: panic: no such server", "Skipped: the run was interrupted before"} {
		assert.Contains(t, string(page), want)
	}
}
