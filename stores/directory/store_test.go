package directory_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/stores/directory"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	leasetest.TestStore(t, func(t testing.TB, namespace string) lease.Store {
		s, err := directory.Open(filepath.Join(root, namespace))
		require.NoError(t, err)
		return s
	})
}
