package main

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// publishedKernel is the section of docs/results.json on a real kernel.
func publishedKernel(t *testing.T) *results.Section {
	r, err := results.ReadFile("../docs/results.json")
	require.NoError(t, err)
	for i := range r.Sections {
		if s := &r.Sections[i]; s.ID == "kernel" {
			require.Empty(t, s.Skipped, "the README and docs/kernel.md have figures of it: publish a run on a host that has QEMU")
			return s
		}
	}
	require.Fail(t, "docs/results.json has no section on a real kernel, and the README and docs/kernel.md have figures of it: run go run ./bench --publish")
	return nil
}

// tableOf returns the cells of the first table of a page whose header has the text.
func tableOf(t *testing.T, page, header string) (rows [][]string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			if len(rows) > 0 {
				return rows
			}
		case len(rows) > 0 || strings.Contains(line, header):
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			rows = append(rows, cells)
		}
	}
	require.NotEmpty(t, rows, "%s has no table with %s", page, header)
	return rows
}

var quoted = regexp.MustCompile("`([a-z0-9-]+)`")

// The table on top of the README has the figures of docs/results.json.
func TestReadmeFigures(t *testing.T) {
	require.NotNil(t, publishedKernel(t))
	r, err := results.ReadFile("../docs/results.json")
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), readmeBegin)
	table := readmeTable(r)
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

// The table of docs/kernel.md agrees with docs/results.json: how much further each clock
// moved than the host's.
func TestKernelPage(t *testing.T) {
	clocks := publishedKernel(t).Table("kernel-clocks")
	rows := tableOf(t, "../docs/kernel.md", "| fault | `CLOCK_REALTIME` |")
	require.Greater(t, len(rows), 2+8)
	sample := func(fault, column string) float64 {
		got := clocks.Cell(fault, column)
		require.Len(t, got.Samples, 1, "%s %s", fault, column)
		return got.Samples[0]
	}
	for _, row := range rows[2:] {
		faults := quoted.FindAllStringSubmatch(row[0], -1)
		require.NotEmpty(t, faults, row[0])
		for _, f := range faults {
			for i, column := range []string{"realtime", "monotonic", "boottime"} {
				got, said := sample(f[1], column), row[i+1]
				switch said {
				case "stops":
					assert.Less(t, got, -1.0, "%s %s", f[1], column)
				case "alike":
					assert.InDelta(t, sample(f[1], "realtime"), got, 0.01, "%s %s", f[1], column)
					assert.Greater(t, math.Abs(sample(f[1], "rate")), 100.0, "%s: the rate against CLOCK_MONOTONIC_RAW", f[1])
				default:
					// A hardware clock has seconds only, which is up to a second of error after a
					// suspend. The host may be busy when it is asked for its time.
					want := span(t, said).Seconds()
					assert.InDelta(t, want, got, 1.5+0.03*math.Abs(want), "%s %s", f[1], column)
				}
			}
		}
	}
}

// span reads "−1 s", "+3.5 h", "0" and "−365 d".
func span(t *testing.T, text string) time.Duration {
	if text == "0" {
		return 0
	}
	parts := regexp.MustCompile(`^([+−])([0-9.]+) (ms|s|min|h|d)$`).FindStringSubmatch(text)
	require.NotNil(t, parts, "%q is no span of time", text)
	n, err := strconv.ParseFloat(parts[2], 64)
	require.NoError(t, err)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[parts[3]]
	d := time.Duration(n * float64(unit))
	if parts[1] == "−" {
		d = -d
	}
	return d
}
