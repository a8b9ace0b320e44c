package chaos_test

import (
	"context"
	"io/fs"
	"maps"
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
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/strategies"
)

// cellPath is the file of the tenth node number.
const cellPath = "node+0000009.cell"

// state is what a directory holds: the modes and contents of its cells.
func stateOf(t *testing.T, dir string) map[string]string {
	state := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(filepath.Base(path), "node") || !strings.HasSuffix(path, ".cell") {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		state[filepath.Base(path)] = text
		return nil
	}))
	return state
}

// damages are the ways in which the file of a cell can be damaged, each with a text
// that the error must contain.
func damages() map[string]struct {
	do   func(t *testing.T, path string, data []byte)
	says string
} {
	write := func(change func(data []byte) string) func(*testing.T, string, []byte) {
		return func(t *testing.T, path string, data []byte) {
			require.NoError(t, os.WriteFile(path, []byte(change(data)), 0o600))
		}
	}
	return map[string]struct {
		do   func(t *testing.T, path string, data []byte)
		says string
	}{
		"empty":   {write(func([]byte) string { return "" }), "it is empty"},
		"garbage": {write(func([]byte) string { return "\x00\xff\x17 what is this?\n" }), "it is not a cell of tickflake"},
		"zeros":   {write(func(data []byte) string { return strings.Repeat("\x00", len(data)) }), "it is not a cell of tickflake"},
		"wrong version": {write(func(data []byte) string {
			return strings.Replace(string(data), "tickflake-cell 1", "tickflake-cell 2", 1)
		}), "its format is 2"},
		"a lower limit, edited": {write(func(data []byte) string {
			return strings.Replace(string(data), `"limit":4`, `"limit":3`, 1)
		}), "its checksum does not match"},
		"another's cell": {write(func(data []byte) string { return strings.Replace(string(data), "0000009", "0000008", 1) }), "it is the cell node/0000008"},
		"twice as long":  {write(func(data []byte) string { return string(data) + string(data) }), "its checksum does not match"},
		"a directory": {func(t *testing.T, path string, _ []byte) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "it is no regular file"},
	}
}

// A damaged cell makes a claim fail with an error that names the file and the reason,
// and is not overwritten. A running process uses up its grant. Once repaired, the cell
// serves again, from the same floor or a later one.
func TestF20_TornState(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			torn(t, damage.says, damage.do)
		})
	}
	t.Run("truncated", func(t *testing.T) {
		dir, _ := used(t)
		data, err := os.ReadFile(filepath.Join(dir, cellPath))
		require.NoError(t, err)
		for n := range data {
			require.NoError(t, os.WriteFile(filepath.Join(dir, cellPath), data[:n], 0o600))
			refused(t, dir, "")
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, cellPath), data, 0o600))
		begins(t, dir).end(t)
	})
}

func torn(t *testing.T, says string, damage func(t *testing.T, path string, data []byte)) {
	dir, first := used(t)
	path := filepath.Join(dir, cellPath)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	damage(t, path, data)
	require.NotEqual(t, map[string]string{cellPath: "-rw------- " + string(data)}, stateOf(t, dir), "it is not damaged")

	// A process uses up its grant, and then its error says why it gets no further one.
	before := stateOf(t, dir)
	_, limit := first.keeper.Granted()
	for first.clock.Wall().Before(limit) {
		first.keeper.Poll(t.Context())
		first.issue(t, 1)
		first.clock.Advance(100 * time.Millisecond)
	}
	_, err = first.next()
	require.ErrorIs(t, err, generator.ErrNotGranted)
	damaged(t, err, dir, says)
	assert.Equal(t, before, stateOf(t, dir))

	// It notices the repair by itself.
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	for range 100 {
		first.clock.Advance(20 * time.Millisecond)
		first.keeper.Poll(t.Context())
	}
	first.issue(t, 1)
	first.crash()

	// A process that starts on it fails.
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	damage(t, path, data)
	refused(t, dir, says)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	_, limit = first.keeper.Granted()
	next := begins(t, dir)
	floor, _ := next.keeper.Granted()
	assert.False(t, floor.Before(limit), "it begins at %s, below %s", floor, limit)
	next.end(t)
}

// user is a process on a directory.
type user struct {
	clock  *clocktest.Virtual
	store  stores.Store
	keeper *lease.Keeper
	gen    *generator.Generator
	last   snowflake.ID
}

// used returns a directory, and a running process that has issued IDs on it.
func used(t *testing.T) (dir string, u *user) {
	dir = filepath.Join(t.TempDir(), "state")
	u = begins(t, dir)
	u.issue(t, 20)
	return dir, u
}

// begins starts a process on a directory.
func begins(t *testing.T, dir string) *user {
	t.Helper()
	u, err := begin(dir)
	require.NoError(t, err)
	return u
}

func begin(dir string) (*user, error) {
	store, err := openFiles(dir)
	if err != nil {
		return nil, err
	}
	return beginOn(store)
}

// beginOn starts a process on a store. Its clock stands at noon.
func beginOn(store stores.Store) (*user, error) {
	u := &user{clock: clocktest.NewVirtual(noon), store: store}
	u.clock.AutoAdvance(true)
	var err error
	u.keeper, err = claimPolled(u.store, u.clock, generatortest.Raw, tenth, lease.WithWindow(grant))
	if err != nil {
		u.crash()
		return nil, err
	}
	u.gen, err = generator.New(generator.WithLease(u.keeper), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	return u, err
}

// next polls the keeper, which has no goroutine, and issues an ID.
func (u *user) next() (snowflake.ID, error) {
	u.keeper.Poll(context.Background())
	return u.gen.Next()
}

func (u *user) issue(t *testing.T, n int) {
	t.Helper()
	for range n {
		id, err := u.next()
		require.NoError(t, err)
		require.Greater(t, id, u.last)
		u.last = id
	}
}

// issueInto issues n IDs, and returns how many of them had been issued before.
func (u *user) issueInto(t *testing.T, issued map[snowflake.ID]bool, n int) (twice int) {
	t.Helper()
	for range n {
		id, err := u.next()
		require.NoError(t, err)
		if issued[id] {
			twice++
		}
		issued[id] = true
	}
	return twice
}

// crash ends the process as kill -9 does.
func (u *user) crash() {
	if files, ok := u.store.(*files); ok {
		files.Crash()
	}
}

func (u *user) end(t *testing.T) {
	t.Helper()
	u.issue(t, 1)
	require.NoError(t, u.gen.Close())
}

// damaged checks an error about a cell that cannot be read.
func damaged(t *testing.T, err error, dir, says string) {
	t.Helper()
	require.ErrorIs(t, err, stores.ErrDamaged)
	assert.ErrorContains(t, err, dir)
	assert.ErrorContains(t, err, cellPath)
	assert.ErrorContains(t, err, says)
}

// refused checks that no process can claim this node number, that another one can be
// claimed, and that the file does not change.
func refused(t *testing.T, dir, says string) {
	t.Helper()
	before := stateOf(t, dir)
	_, err := begin(dir)
	damaged(t, err, dir, says)
	require.True(t, maps.Equal(before, stateOf(t, dir)), "it was overwritten")
	store, err := openFiles(dir)
	require.NoError(t, err)
	other, err := claimPolled(store, clocktest.NewVirtual(noon), generatortest.Raw)
	require.NoError(t, err)
	assert.NotEqualValues(t, 9, other.Node())
	require.NoError(t, other.Close())
	require.Equal(t, before[cellPath], stateOf(t, dir)[cellPath], "it was overwritten")
}

// A directory that cannot hold state is refused, and left as it is.
func TestF20_TornState_Directory(t *testing.T) {
	refuse := func(t *testing.T, dir, says string) {
		t.Helper()
		_, err := openFiles(dir)
		require.ErrorIs(t, err, directory.ErrUnfit)
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, dir)
	}
	t.Run("others may write", func(t *testing.T) {
		dir, first := used(t)
		first.end(t)
		before := stateOf(t, dir)
		require.NoError(t, os.Chmod(dir, 0o777))
		refuse(t, dir, "the mode 0777")
		assert.Equal(t, before, stateOf(t, dir))
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		refuse(t, path, "is not a directory")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "mine", string(data))
	})
	t.Run("below a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		refuse(t, filepath.Join(path, "state"), "not a directory")
	})
	t.Run("no name", func(t *testing.T) { refuse(t, "", "has no name") })
	// It is a new directory then, as on the first day; but not while it is in use.
	t.Run("removed while in use", func(t *testing.T) {
		dir, first := used(t)
		require.NoError(t, os.RemoveAll(dir))
		_, limit := first.keeper.Granted()
		first.clock.Advance(limit.Sub(first.clock.Wall()))
		_, err := first.next()
		require.ErrorIs(t, err, generator.ErrNotGranted)
		assert.ErrorContains(t, err, dir)
		assert.NoDirExists(t, dir)
	})
}
