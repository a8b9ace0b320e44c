//go:build unix

package sequences

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
	_ "github.com/tickflake/tickflake/stores/postgres"
)

// place is an empty store for one test.
type place struct {
	url string

	// save copies all cells, and returns a function that puts the copy in their place, as a
	// backup does. clear removes all cells.
	save  func(testing.TB) (restore func(testing.TB))
	clear func(testing.TB)
}

func (p place) open(t testing.TB) stores.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), p.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// engine makes places.
type engine func(testing.TB) place

func TestDirectory(t *testing.T) {
	t.Parallel()
	onEngine(t, onDirectory)
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	onEngine(t, startPostgres(t))
}

// onEngine runs all tests on one engine, in both modes.
func onEngine(t *testing.T, on engine) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, place, sequence.Mode)
	}{
		{"killed", testKilled},
		{"processes", testProcesses},
		{"restored", testRestored},
		{"emptied", testEmptied},
		{"created anew", testCreatedAnew},
		{"created anew and used", testCreatedAnewAndUsed},
	} {
		for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
			t.Run(test.name+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				test.run(t, on(t), mode)
			})
		}
	}
}

func onDirectory(t testing.TB) place {
	path := filepath.Join(t.TempDir(), "state")
	clear := func(t testing.TB) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(path, "*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			require.NoError(t, os.Remove(file))
		}
	}
	return place{url: path, clear: clear, save: func(t testing.TB) func(testing.TB) {
		copied := t.TempDir()
		require.NoError(t, os.CopyFS(copied, os.DirFS(path)))
		return func(t testing.TB) {
			clear(t)
			require.NoError(t, os.CopyFS(path, os.DirFS(copied)))
		}
	}}
}

func startPostgres(t testing.TB) engine {
	t.Helper()
	s := servers.For(t, servers.PostgreSQL)
	db, err := s.SQL(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	exec := func(t testing.TB, statements ...string) {
		t.Helper()
		tx, err := db.Begin()
		require.NoError(t, err)
		for _, statement := range statements {
			_, err := tx.Exec(statement)
			require.NoError(t, err, statement)
		}
		require.NoError(t, tx.Commit())
	}
	return func(testing.TB) place {
		table := "t" + strings.ToLower(rand.Text()[:12])
		return place{url: s.At(s.Addr, "table="+table),
			clear: func(t testing.TB) { exec(t, "DELETE FROM "+table) },
			save: func(t testing.TB) func(testing.TB) {
				copied := fmt.Sprintf("%s_%d", table, time.Now().UnixNano())
				exec(t, fmt.Sprintf("CREATE TABLE %s AS TABLE %s", copied, table))
				return func(t testing.TB) {
					exec(t, "DELETE FROM "+table, fmt.Sprintf("INSERT INTO %s TABLE %s", table, copied))
				}
			}}
	}
}
