package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// The table on top of the README has the figures of docs/results.json.
func TestReadmeFigures(t *testing.T) {
	r, err := results.ReadFile("../docs/results.json")
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), readmeBegin)
	table := readmeTable(r)
	require.NotEmpty(t, table, "docs/results.json has no figures of a real kernel: publish a run on a host that has QEMU")
	assert.Equal(t, withTable(string(readme), table), string(readme), "run go run ./bench render docs/results.json --publish")
	assert.NotContains(t, table, "| "+results.NotRun+" |", "each fault of the table was run")
}

// The README says of each generator the worst that a fault did to it.
func TestReadmeTable(t *testing.T) {
	var names []string
	for _, row := range readmeRows {
		names = append(names, row[1])
	}
	of := func(id string, samples ...float64) results.Table {
		table := results.Table{ID: id, Columns: []results.Column{{ID: readmeFaults[0][0]}}}
		for i, name := range names {
			table.Rows = append(table.Rows, results.Row{Name: name, Cells: []results.Cell{{Samples: samples[i : i+1], Text: results.Figure(samples[i])}}})
		}
		return table
	}
	r := &results.Report{Sections: []results.Section{{ID: "kernel", Tables: []results.Table{
		{ID: "kernel-run", Columns: []results.Column{{ID: "is"}}, Rows: []results.Row{{Name: "kernel", Cells: []results.Cell{{Text: "Linux 6.1"}}}}},
		of("kernel-duplicates", 1004, 0, 0), of("kernel-stall", 3, 2, 0), of("kernel-errors", 5, 0, 0),
	}}}}
	table := readmeTable(r)
	assert.Contains(t, table, "| bwmarrin/snowflake | 1,004 duplicate IDs | – |")
	assert.Contains(t, table, "| sony/sonyflake | blocked for 2 or more | – |")
	assert.Contains(t, table, "| **tickflake** | **no duplicate** | **–** |")
	assert.Contains(t, table, "Linux 6.1")
	assert.Empty(t, readmeTable(&results.Report{Sections: []results.Section{{ID: "kernel", Skipped: "no QEMU"}}}))

	old := "a\n" + readmeBegin + "old" + readmeEnd + "b\n"
	assert.Equal(t, "a\n"+readmeBegin+table+readmeEnd+"b\n", withTable(old, table))
	assert.Equal(t, old, withTable(old, ""), "a run without the section leaves it")
	assert.Equal(t, "a", withTable("a", table))
}
