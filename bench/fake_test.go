package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// fake is a section that measures at once: the first numbers of its order.
func fake(id string) measure.Section {
	return measure.Section{ID: id, Title: "Section " + id, Full: 40 * time.Second, Quick: time.Second,
		Measure: func(_ context.Context, run *measure.Run) results.Section {
			run.Progress(1, 2, "a case")
			cell := results.Cell{Samples: []float64{run.Rand.Float64(), run.Rand.Float64(), run.Budget.Seconds()}}
			return results.Section{
				Targets: []results.Target{{ID: id + "-target", Text: "At most 50", Want: 50, AtMost: true, Got: cell}},
				Tables: []results.Table{{ID: id, Title: "Table of " + id, RowName: "case", Columns: []results.Column{{ID: "s", Title: "time", Unit: "s"}}, Rows: []results.Row{{Name: "case", Cells: []results.Cell{cell}}},
					Charts: []results.Chart{{ID: id + "-chart", Title: "Chart of " + id}}}},
			}
		},
		Verdict: func(s results.Section) string {
			if len(s.Tables) == 0 {
				return ""
			}
			return "`" + id + "` was measured."
		}}
}

// with is a fake section that measures in a way of its own.
func with(id string, measured func(context.Context, *measure.Run) results.Section) measure.Section {
	s := fake(id)
	s.Measure = measured
	return s
}

// did is the outcome of a command line.
type did struct {
	code     int
	out, err string
	folder   string
}

// report is the report that was written.
func (d did) report(t *testing.T) *results.Report {
	r, err := results.ReadFile(filepath.Join(d.folder, "report.json"))
	require.NoError(t, err)
	return r
}

// bench runs a command line with fake sections, in a repository of its own.
func bench(t *testing.T, sections []measure.Section, args ...string) did {
	return benchIn(t, t.Context(), clone(t), sections, args...)
}

func benchIn(t *testing.T, ctx context.Context, root string, sections []measure.Section, args ...string) did {
	t.Chdir(root)
	var out, err bytes.Buffer
	code := execute(ctx, program{sections: sections, out: &out, err: &err}, args)
	return did{code, out.String(), err.String(), filepath.Join(root, "bench", "report")}
}

// clone makes a repository.
func clone(t *testing.T) string {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bench", "sub"), 0o755))
	for name, text := range map[string]string{
		"go.mod":       "// A comment.\nmodule " + modulePath + "\n",
		"bench/go.mod": "module " + modulePath + "/bench\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	return root
}
