package chaos_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// TestF20_TornState damages the file of a node number. The running process uses up its grant,
// then its calls fail with the reason; so does the start of another. Nothing is overwritten.
// Once the file is repaired, IDs go on above all earlier ones. A disk that is read-only or
// full, a crash within a write, and an unfit directory are tests of stores/directory; real
// disks are faults on a real kernel.
func TestF20_TornState(t *testing.T) {
	for name, damage := range map[string]struct { // stores/directory has what else can be wrong with a file
		do   func(path, data string) error
		says string
	}{
		"empty": {func(path, _ string) error { return os.WriteFile(path, nil, 0o600) }, "it is empty"},
		"a lower limit, edited": {func(path, data string) error {
			return os.WriteFile(path, []byte(strings.Replace(data, `"limit":4`, `"limit":3`, 1)), 0o600)
		}, "its checksum does not match"},
		"a directory": {func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "it is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "node+0000000.cell")
			clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
			clock.AutoAdvance(true)
			process, err := generatortest.Leased{
				Strategy: strategies.BorrowUpTo(time.Hour),
				Stores: func() func() (stores.Store, error) {
					return func() (stores.Store, error) { return openFiles(filepath.Dir(path)) }
				},
			}.Subject().New(clock)
			require.NoError(t, err)
			var last snowflake.ID
			issue := func(next func() (snowflake.ID, error)) {
				t.Helper()
				id, err := next()
				require.NoError(t, err)
				require.Greater(t, id, last)
				last = id
			}
			damaged := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, stores.ErrDamaged)
				assert.ErrorContains(t, err, filepath.Dir(path))
				assert.ErrorContains(t, err, filepath.Base(path))
				assert.ErrorContains(t, err, damage.says)
			}
			for range 20 {
				issue(process.Next)
			}

			whole := state(t, path)
			require.NoError(t, damage.do(path, whole))
			before := state(t, path)
			require.NotEqual(t, whole, before, "it is not damaged")
			for range 10 {
				issue(process.Next)
				clock.Advance(lease.DefaultLocalWindow / 20)
			}
			clock.Advance(lease.DefaultLocalWindow)
			_, err = process.Next()
			require.ErrorIs(t, err, generator.ErrNotGranted)
			damaged(err)
			_, err = process.Restart()
			damaged(err)
			assert.Equal(t, before, state(t, path), "it was overwritten")

			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.WriteFile(path, []byte(whole), 0o600))
			next, err := process.Restart()
			require.NoError(t, err)
			clock.Step(-time.Minute)
			for range 20 {
				issue(next.Next)
			}
			require.NoError(t, next.Close())
		})
	}
}

// state is the text of a file, or what else is in its place.
func state(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return "a directory"
	}
	require.NoError(t, err)
	return string(text)
}
