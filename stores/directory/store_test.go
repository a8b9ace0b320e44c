package directory_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) { storetest.TestStore(t, opener(t)) }

// opener makes a directory for each namespace.
func opener(t *testing.T) func(testing.TB, string) stores.Store {
	root := t.TempDir()
	return func(t testing.TB, namespace string) stores.Store {
		s, err := directory.Open(t.Context(), filepath.Join(root, namespace))
		require.NoError(t, err)
		return s
	}
}
