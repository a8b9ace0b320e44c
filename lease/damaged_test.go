package lease_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/storetest"
)

// A damaged file may be the only record of the IDs that were issued with its number. It
// costs that number, is left as it is, and stops a process that must have the number.
func TestDamagedFileCostsItsNumber(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o700))
	store, err := directory.Open(t.Context(), path)
	require.NoError(t, err)
	defer store.Close()
	clock := clocktest.NewVirtual(noon)
	var log bytes.Buffer
	options := quiet(clock, lease.WithTimeout(time.Minute), logTo(&log))
	k, err := lease.Claim(t.Context(), store, options...) // makes the cell of 0
	require.NoError(t, err)
	require.EqualValues(t, 0, k.Node())
	files, err := filepath.Glob(filepath.Join(path, "*0000000*"))
	require.NoError(t, err)
	if len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(path, "*", "*0000000*"))
		require.NoError(t, err)
	}
	file := ""
	var text []byte
	for _, name := range files {
		if text, err = os.ReadFile(name); err == nil && len(text) > 100 {
			file = name
			break
		}
	}
	require.NotEmpty(t, file, "%v", files)
	require.NoError(t, os.WriteFile(file, text[:len(text)/2], 0o600))
	damaged, err := os.ReadFile(file)
	require.NoError(t, err)

	other, err := lease.Claim(t.Context(), store, options...)
	require.NoError(t, err)
	require.EqualValues(t, 1, other.Node())
	_, err = lease.Claim(t.Context(), store, append(options, lease.WithNode(lease.NodeNumber(0)))...)
	require.Error(t, err)

	holding, err := lease.Inspect(t.Context(), store, 0)
	require.NoError(t, err)
	assert.Equal(t, lease.Damaged, holding.State)
	assert.ErrorIs(t, holding.Err, stores.ErrDamaged)
	err = lease.ForceRelease(t.Context(), store, 0)
	require.ErrorIs(t, err, stores.ErrDamaged)
	assert.NotContains(t, err.Error(), "does not answer")

	// Its holder has the rest of its grant, and another number after it.
	before := k.Stats()
	clock.Advance(lease.DefaultLocalWindow / 2)
	k.Poll(t.Context())
	assert.Greater(t, k.Stats().Failures, before.Failures, "the store answers, but not with a record")
	assert.EqualValues(t, 2, k.Node())
	assert.Contains(t, log.String(), "its cell is damaged")
	require.NoError(t, k.Close())
	require.NoError(t, other.Close())
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, damaged, after)
}

func TestStrangeValueCostsItsNumber(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	_, err := memory.Swap(t.Context(), cell.NodeKey(0), 0, []byte("somebody else's"))
	require.NoError(t, err)
	var log bytes.Buffer
	for range 3 {
		k, err := lease.Claim(t.Context(), memory.Client().Locking(), quiet(clock, small(1), logTo(&log))...)
		require.NoError(t, err)
		require.EqualValues(t, 1, k.Node())
		require.EqualValues(t, 1, k.Stats().Failures)
		require.NoError(t, k.Close())
	}
	require.Equal(t, 3, bytes.Count(log.Bytes(), []byte("cannot be read")), "once for each")
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, small(1), lease.WithNode(lease.NodeNumber(0)))...)
	require.ErrorIs(t, err, stores.ErrDamaged)
	require.ErrorContains(t, err, "node number 0")
	require.Equal(t, "somebody else's", string(memory.Peek(cell.NodeKey(0)).Value))
}

// A pinned keeper whose cell cannot be read says so until it can.
func TestStrangeValueOfAPinnedNumber(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithNode(lease.NodeNumber(3)))...)
	require.NoError(t, err)
	key := cell.NodeKey(3)
	_, err = memory.Swap(t.Context(), key, memory.Peek(key).Version, []byte("somebody else's"))
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 2)
	for range 3 {
		k.Poll(t.Context())
		clock.Advance(time.Second)
		assert.ErrorIs(t, k.Err(), stores.ErrDamaged)
		assert.NotErrorIs(t, k.Err(), lease.ErrLost)
	}
	assert.EqualValues(t, 3, k.Stats().Failures)
}

// What is wrong with the cell of the layout is said of that cell.
func TestDamagedLayoutCell(t *testing.T) {
	for _, value := range []string{"somebody else's", `{"format":1,"layout":"no layout"}`, `{"format":2,"layout":""}`} {
		memory := storetest.NewMemory()
		_, err := memory.Swap(t.Context(), cell.LayoutKey, 0, []byte(value))
		require.NoError(t, err)
		_, err = lease.Claim(t.Context(), memory, quiet(clocktest.NewVirtual(noon))...)
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.ErrorContains(t, err, "cell of the layout")
	}
}

// A record that is no keeper's, with a window of ages, is not taken for an old one.
func TestAWindowOfAgesIsNotOver(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := storetest.NewMemory()
	layout := snowflake.Default()
	layout.NodeBits, layout.Name, layout.Tick = 0, "", time.Second
	_, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(layout))...)
	require.NoError(t, err)
	c := memory.Peek(cell.NodeKey(0))
	r, err := cell.DecodeNode(c.Value)
	require.NoError(t, err)
	r.Window = math.MaxUint64
	_, err = memory.Swap(t.Context(), c.Key, c.Version, r.Encode())
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithLayout(layout))...)
	var full *lease.NoFreeNodeError
	require.ErrorAs(t, err, &full)
}
