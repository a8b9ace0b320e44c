package guest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A library that accepts the directory, as it does one on a disk of this host, breaks the
// promise of each call.
func TestAcceptedDirectoryIsFound(t *testing.T) {
	r := refusal(t.Context(), t.TempDir())
	require.Equal(t, []string{"directory.Open accepts it", "stores.Open accepts it", "stores.Open accepts it"}, r.Broken)
	require.Empty(t, r.Refused)
	require.Equal(t, 1000, r.IDs)
}
