package lease_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/stores/directory"
)

// A damaged cell may be the only record of what was issued. It stops whoever starts,
// at once even with a deadline to wait for, and is left as it is.
func TestDamagedCellStopsClaims(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o700))
	store, err := directory.Open(path)
	require.NoError(t, err)
	clock := clocktest.NewVirtual(noon)
	k, err := lease.Claim(t.Context(), store, lease.WithClock(clock), lease.WithTimeout(time.Minute), lease.WithPolling()) // makes cell 0
	require.NoError(t, err)
	file := filepath.Join(path, "0000000.cell")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text[:len(text)/2], 0o600))
	damaged, err := os.ReadFile(file)
	require.NoError(t, err)

	_, err = lease.Claim(t.Context(), store, lease.WithClock(clock), lease.WithPolling())
	require.ErrorIs(t, err, lease.ErrDamaged)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, damaged, after)

	holding, err := lease.InspectNode(t.Context(), store, 0)
	require.NoError(t, err)
	assert.Equal(t, lease.Damaged, holding.State)
	assert.ErrorIs(t, holding.Err, lease.ErrDamaged)
	_, err = lease.Inspect(t.Context(), store)
	require.ErrorIs(t, err, lease.ErrDamaged)
	assert.NotContains(t, err.Error(), "does not answer")
	err = lease.ForceRelease(t.Context(), store, 0)
	require.ErrorIs(t, err, lease.ErrDamaged)
	assert.NotContains(t, err.Error(), "does not answer")
	before := k.Stats().Failures
	clock.Advance(lease.DefaultLocalWindow / 2)
	k.Poll(t.Context())
	assert.Greater(t, k.Stats().Failures, before, "the store answers, but not with what was asked for")
	var notReleased *lease.ReleaseError
	require.ErrorAs(t, k.Close(), &notReleased)
}

func TestStrangeValueStopsClaims(t *testing.T) {
	store := leasetest.NewMemory()
	_, err := store.Swap(t.Context(), lease.Cell{Node: 3}, []byte("somebody else's"))
	require.NoError(t, err)
	_, err = lease.Claim(t.Context(), store)
	var record *lease.RecordError
	require.ErrorAs(t, err, &record)
	require.ErrorIs(t, err, lease.ErrDamaged)
	assert.EqualValues(t, 3, record.Node)
}

// What others did to a cell that is held counts as a failure when it cannot be read.
func TestStrangeValueIsAFailure(t *testing.T) {
	clock := clocktest.NewVirtual(noon)
	memory := leasetest.NewMemory()
	k, err := lease.Claim(t.Context(), memory.Client(), quiet(clock, lease.WithNode(lease.NodeNumber(3)))...)
	require.NoError(t, err)
	cell, err := memory.Read(t.Context(), 3)
	require.NoError(t, err)
	_, err = memory.Swap(t.Context(), cell, []byte("somebody else's"))
	require.NoError(t, err)
	clock.Advance(lease.DefaultWindow / 2)
	k.Poll(t.Context())
	assert.EqualValues(t, 1, k.Stats().Failures)
	assert.ErrorIs(t, k.Err(), lease.ErrDamaged)
}
