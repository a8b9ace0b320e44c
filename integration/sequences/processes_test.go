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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
	_ "github.com/tickflake/tickflake/stores/postgres"
)

func TestDirectory(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t testing.TB) string { return filepath.Join(t.TempDir(), "state") })
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.PostgreSQL)
	onEngine(t, func(testing.TB) string { return s.At(s.Addr, "table=t"+strings.ToLower(rand.Text()[:12])) })
}

// onEngine runs all tests in both modes, each on an empty store, of which on makes the URL.
func onEngine(t *testing.T, on func(testing.TB) string) {
	for name, test := range map[string]func(*testing.T, string, sequence.Mode){"killed": testKilled, "processes": testProcesses} {
		for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				test(t, on(t), mode)
			})
		}
	}
}

// open opens a store until the test ends.
func open(t testing.TB, url string) stores.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Three processes make one period at once. Their calls of an ordered sequence, on real stores, are linearizable, and so
// are those that read its highest number. Without a crash no number is missing.
func testProcesses(t *testing.T, url string, mode sequence.Mode) {
	j := job{URL: url, Name: "orders.2027", Period: true, Callers: 4, Calls: 40, Batch: 3, Inspect: mode == sequence.Ordered, Together: true, Pace: time.Millisecond,
		Definition: sequence.Definition{Mode: mode, Start: 1, MinStep: 20, MaxStep: 20}}
	by := j.Definition
	by.Period = sequence.Yearly
	require.NoError(t, sequence.Create(t.Context(), open(t, url), "orders", by))
	input, begin, err := os.Pipe() // of all processes, which begin when it ends
	require.NoError(t, err)
	defer input.Close() //nolint:errcheck // nothing was written
	var l fleet.Ledger
	var all [3]*fleet.Process
	for i := range all {
		all[i], err = j.start(t.Context(), &l, fmt.Sprint("process ", i), input, func(int) {})
		require.NoError(t, err)
		defer all[i].Kill() //nolint:errcheck // it has ended, unless the test has failed
	}
	require.NoError(t, begin.Close())
	for _, p := range all {
		require.NoError(t, p.Wait(), p.Output())
	}
	issued := checkUnique(t, &l)
	assert.Equal(t, int64(3*4*(j.Calls*4/5+j.Calls/5*3)), issued)
	if mode == sequence.Segmented {
		return
	}
	late, example := l.Disorder(false)
	assert.Zero(t, late, example)
	now := fleet.Now()
	l.Note(fleet.Entry{First: 1, N: 1, Begin: now, End: now})
	late, _ = l.Disorder(false)
	assert.Positive(t, late, "the check does not see a number that comes too late")
	info, err := sequence.Inspect(t.Context(), open(t, url), j.Name)
	require.NoError(t, err)
	assert.Equal(t, issued, info.Last, "a number is missing, and there was no crash")
	t.Logf("%d numbers by %d writes", issued, info.Writes)
}

// checkUnique checks that no number was issued twice, and returns how many were issued.
func checkUnique(t *testing.T, l *fleet.Ledger) (issued int64) {
	t.Helper()
	twice, example := l.Twice()
	require.Zero(t, twice, example)
	issued, _ = l.Count()
	return issued
}
