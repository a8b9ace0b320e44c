package servertest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
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

// TestMoveFindsDuplicates loses all floors after the import.
func TestMoveFindsDuplicates(t *testing.T) {
	memory := storetest.NewMemory()
	twice := strings.Join(servertest.Move{From: memories(), To: func() stores.Store { return memory.Client() }, Imported: memory.Snapshot()}.Run(t), "\n")
	assert.Contains(t, twice, "ID ")
	assert.Contains(t, twice, "number ")
}
