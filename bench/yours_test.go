package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
)

// The generator of bench/yours/example.go is in every section that applies. The section on a
// real kernel is in package realkernel.
func TestYoursIsInEverySection(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program and measures for 20 s")
	}
	assert.Empty(t, yours.List(), "the report has none without the tag")
	program, folder := filepath.Join(t.TempDir(), "bench"), t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "example", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), program, "--quick", "--out", folder, "--only", "cost,ceiling,scaling,latency,faults,waste,index").CombinedOutput()
	require.NoError(t, err, "%s", out)
	r, err := results.ReadFile(filepath.Join(folder, "report.json"))
	require.NoError(t, err)
	tables := map[string][]string{
		"cost": {"cost"}, "ceiling": {"ceiling-share", "ceiling-cpu", "ceiling-cores"}, "scaling": {"scaling", "scaling-floor"},
		"latency": {"latency-10000", "latency-100000", "latency-1000000"}, "faults": {"faults-default", "faults-summary", "faults-card"},
		"waste": {"waste-busy", "waste-chances"}, "index": {"index-postgresql", "index-mariadb"},
	}
	require.Len(t, r.Sections, len(tables))
	for i := range r.Sections {
		s := &r.Sections[i]
		for _, id := range tables[s.ID] {
			table := s.Table(id)
			if s.ID == "index" && table.ID == "" {
				t.Logf("%s: not measured: %s %v", id, s.Skipped, s.Notes)
				continue
			}
			require.NotEmpty(t, table.ID, id)
			said := 0
			for _, c := range table.Columns {
				if cell := table.Cell("yours", c.ID); len(cell.Samples) > 0 || cell.Text != "" && cell.Text != results.NotRun {
					said++
				}
			}
			assert.Greater(t, said, len(table.Columns)/2, "%s", id)
		}
	}
	for _, fault := range []string{"F1", "F16"} {
		for i := range r.Sections {
			if s := &r.Sections[i]; s.ID == "faults" {
				assert.NotEqual(t, results.Bad, s.Table("faults-default").Cell("yours", fault).Mark, "it waits, so no ID comes twice")
			}
		}
	}
}
