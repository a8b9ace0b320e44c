package report

import (
	"cmp"
	"io"
	"runtime"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Benchfmt writes the samples of all cells as the text that benchstat compares: a line per
// sample, named by table, row and column.
func (r *Report) Benchfmt(to io.Writer) (failed error) {
	w := benchfmt.NewWriter(to)
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			for _, row := range t.Rows {
				for i, column := range t.Columns {
					result := benchfmt.Result{Iters: 1, Name: benchfmt.Name(t.ID + "/" + strings.ReplaceAll(row.Name, " ", "_") + "/" + column.ID)}
					for _, key := range [][2]string{{"cpu", r.CPU}, {"goos", runtime.GOOS}, {"commit", r.Commit}, {"command", r.Command}} {
						result.SetConfig(key[0], key[1])
					}
					for _, v := range row.Cells[i].Samples {
						result.Values = []benchfmt.Value{{Value: v, Unit: strings.ReplaceAll(cmp.Or(column.Unit, column.ID), " ", "-")}}
						failed = cmp.Or(failed, w.Write(&result))
					}
				}
			}
		}
	}
	return failed
}
