package oteltickflake

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
)

var update = flag.Bool("update", false, "write the table of README.md")

// TestTables guards that each metric has its value, and that README.md has the table of all metrics.
func TestTables(t *testing.T) {
	var rows [2]string
	check(t, &rows, generatorMetrics, issuer{generator.Stats{Waits: 1, Waited: 2 * time.Second, BorrowedTicks: 3, Rejections: 4,
		Lead: 5 * time.Second, MaxLead: 6 * time.Second, Remaining: 7 * time.Second, Drift: 8 * time.Second, WallError: 9 * time.Second}, 10})
	check(t, &rows, idMetrics, 1)
	check(t, &rows, leaseMetrics, lease.Stats{Claims: 1, Extensions: 2, Conflicts: 3, Releases: 4, Failures: 5, WentBack: 6, Pauses: 7,
		Copies: 8, Remaining: 9 * time.Second, Window: 10 * time.Second})
	check(t, &rows, sequenceMetrics, numbers{sequence.Stats{Issued: 1, Refills: 2, Waited: 3 * time.Second, Starved: 4, Lost: 5, Conflicts: 6,
		Failures: 7, WentBack: 8, Copies: 9, Rate: 10, Step: 11, Reserved: 12, GapBound: 13, Last: 14, Left: 15}, 16})
	table := "| counter | says |\n|---|---|\n" + rows[counter] + "\n| gauge | says |\n|---|---|\n" + rows[gauge]
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(readme), "-update. Edits are lost. -->\n\n")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "\n<!-- end -->")
	require.True(t, found)
	want := before + "-update. Edits are lost. -->\n\n" + table + "\n<!-- end -->" + after
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(readme), "go test ./oteltickflake -run TestTables -update")
}

// check checks that the metrics have the values 1, 2, 3 …, and adds their rows to the tables of counters and gauges.
func check[S any](t *testing.T, tables *[2]string, rows []row[S], s S) {
	for i, r := range rows {
		assert.EqualValues(t, i+1, number(r.value(s)), r.name)
		require.NotEmpty(t, r.description, r.name)
		tables[min(r.kind, gauge)] += fmt.Sprintf("| `%s` | %s |\n", r.name, strings.TrimSuffix(r.description, "."))
	}
}
