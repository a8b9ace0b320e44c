package indexes

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

func init() { yours.Add(yours.Mine()) }

func quick(t *testing.T) *measure.Run {
	return &measure.Run{Quick: true, Budget: time.Millisecond, Rand: rand.New(rand.NewPCG(1, 2)),
		Progress: func(done, of int, what string) {
			assert.LessOrEqual(t, done, of)
			assert.NotEmpty(t, what)
		}}
}

func check(t *testing.T, s results.Section) {
	s.ID = "index"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
}

// On real servers, where they are installed.
func TestBothEngines(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two servers")
	}
	// With no time at all: each table gets as much as is the least.
	p := plan{rows: 20_000, batches: 1, least: 5}
	section := measureIndexes(t.Context(), quick(t), p)
	check(t, section)
	notes := strings.Join(section.Notes, "\n")
	if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") == "1" {
		require.NotContains(t, notes, "does not run here")
	}
	if section.Skipped != "" {
		t.Skip(section.Skipped, notes)
	}
	assert.NotContains(t, notes, "did not get to the end")
	for _, e := range engines() {
		table := section.Table("index-" + e.id)
		if table.ID == "" {
			assert.Contains(t, notes, string(e.kind)+" does not run here")
			continue
		}
		assert.Contains(t, table.Title, "5,000 rows")
		require.Len(t, table.Rows, 5, "one of them is yours")
		for _, row := range table.Rows {
			assert.Len(t, row.Cells[0].Samples, 5, row.Name)
			assert.Len(t, row.Cells[1].Samples, 1, row.Name)
			for _, c := range []string{"whole", "log", "splits"} {
				assert.Greater(t, table.Cell(row.Name, c).Median(), 0.0, "%s %s", row.Name, c)
			}
			assert.GreaterOrEqual(t, table.Cell(row.Name, "whole").Median(), 108.0, "of key and payload alone")
		}
		least := "index"
		if e.kind == servers.MariaDB {
			least = "splits" // its tables grow by extents, which hides much at this size
		}
		ours := table.Cell(oursName, least).Median()
		assert.InEpsilon(t, ours, table.Cell(autoName, least).Median(), 0.05, "both are 8 bytes, in order")
		assert.Greater(t, table.Cell(sortedName, least).Median(), ours, "16 bytes are more than 8")
		assert.Greater(t, table.Cell(randomName, least).Median(), table.Cell(sortedName, least).Median(), "pages that are split at random are emptier")

		growth := section.Table("index-growth-" + e.id)
		require.Len(t, growth.Columns, 3, "two chunks each, and the rest")
		assert.Equal(t, []float64{2000, 4000, 5000}, []float64{growth.Columns[0].X, growth.Columns[1].X, growth.Columns[2].X})
	}
	assert.Contains(t, verdict(section), "rows per second with tickflake IDs")
}

// The pages of an index tell how often one was split: PostgreSQL's log agrees.
func TestSplitsInPostgreSQL(t *testing.T) {
	s := servers.For(t, servers.PostgreSQL)
	db, err := s.SQL(nil)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("CREATE EXTENSION pg_walinspect"); err != nil {
		t.Skip("PostgreSQL before 15, or without its contrib modules: ", err)
	}
	all, err := keys()
	require.NoError(t, err)
	for _, k := range all {
		table := &subject{engine: engines()[0], key: k, db: db}
		require.NoError(t, table.open(t.Context()))
		var from string
		require.NoError(t, db.QueryRow("SELECT pg_current_wal_insert_lsn()::text").Scan(&from))
		require.NoError(t, table.chunk(t.Context(), rand.New(rand.NewPCG(1, 2)), 20))
		require.NoError(t, table.weigh(t.Context()))
		_, err := db.Exec("SELECT pg_switch_wal()") // which also writes it
		require.NoError(t, err)
		var splits int
		require.NoError(t, db.QueryRow(`SELECT COUNT(*) FROM pg_get_wal_records_info($1::pg_lsn, pg_current_wal_flush_lsn())
			WHERE resource_manager = 'Btree' AND record_type LIKE 'SPLIT%'
			AND block_ref LIKE '%/' || pg_relation_filenode($2::text || '_pkey') || ' %'`, from, table.table).Scan(&splits))
		assert.EqualValues(t, splits, table.size.splits, k.name)
		assert.Greater(t, splits, 20, k.name)
	}
}
