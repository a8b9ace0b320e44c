package oteltickflake

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
)

// TestTables guards that each metric has its value, and that the table of README.md has all metrics,
// with their kinds and units.
func TestTables(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|[^|]+\\| ([a-z]+, [a-z1{}/]+) \\|").FindAllStringSubmatch(string(readme), -1) {
		listed[row[1]] = row[2]
	}
	n := len(listed)
	check(t, listed, generatorMetrics, issuer{generator.Stats{Waits: 1, Waited: 2 * time.Second, BorrowedTicks: 3, Rejections: 4,
		Lead: 5 * time.Second, MaxLead: 6 * time.Second, Granted: 7 * time.Second, Drift: 8 * time.Second}, 9})
	check(t, listed, leaseMetrics, lease.Stats{Claims: 1, Extensions: 2, Conflicts: 3, Releases: 4, Failures: 5, WentBack: 6, Pauses: 7,
		Skew: 8 * time.Second, Remaining: 9 * time.Second, Window: 10 * time.Second})
	check(t, listed, sequenceMetrics, numbers{sequence.Stats{Issued: 1, Refills: 2, Waited: 3 * time.Second, Starved: 4, Lost: 5, Conflicts: 6,
		Failures: 7, WentBack: 8, Rate: 9, Step: 10, Reserved: 11, GapBound: 12, Last: 13, Left: 14}, 15})
	check(t, listed, idMetrics, 1)
	assert.Equal(t, map[string]string{"tickflake.store.operation.duration": "histogram, s"}, listed, "of %d", n)
}

// check checks that the rows have the values 1, 2, 3 …, and takes them out of listed.
func check[S any](t *testing.T, listed map[string]string, rows []row[S], s S) {
	for i, r := range rows {
		kind := "gauge"
		if r.kind == counter {
			kind = "counter"
		}
		assert.EqualValues(t, i+1, number(r.value(s)), r.name)
		assert.Equal(t, listed[r.name], fmt.Sprintf("%s, %s", kind, r.unit), r.name)
		assert.NotEmpty(t, r.description, r.name)
		delete(listed, r.name)
	}
}
