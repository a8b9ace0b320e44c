package servertest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/storetest"
)

func directories(t *testing.T) func() stores.Store {
	path := t.TempDir()
	return func() stores.Store {
		store, err := directory.Open(t.Context(), path)
		require.NoError(t, err)
		return store
	}
}

func memories() func() stores.Store {
	memory := storetest.NewMemory()
	return func() stores.Store { return memory.Client() }
}

// TestMove moves a fleet and sequences while they are in use. No ID or number is issued twice.
func TestMove(t *testing.T) {
	assert.Empty(t, servertest.Move{From: directories(t), To: memories()}.Run(t))
	assert.Empty(t, servertest.Move{From: memories(), To: directories(t)}.Run(t))
}

// TestMoveFindsDuplicates lowers the floors between export and import.
func TestMoveFindsDuplicates(t *testing.T) {
	assert.NotEmpty(t, servertest.Move{From: memories(), To: memories(), Floors: func(f *lease.Floors) { f.Nodes = nil }}.Run(t))
	assert.NotEmpty(t, servertest.Move{From: memories(), To: memories(), Floor: func(f *sequence.Floor) { f.Index, f.Next = f.Index-5, f.Next-5*f.Definition.Stride.By() }}.Run(t))
}
