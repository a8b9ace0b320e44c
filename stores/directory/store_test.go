package directory_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
		s, err := directory.Open(t.Context(), filepath.Join(root, namespace))
		require.NoError(t, err)
		return s
	})
}
