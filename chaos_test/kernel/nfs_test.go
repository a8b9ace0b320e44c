package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
)

// TestFaults shows the refusal. A kernel without the modules boots no machine.
func TestNFSWithoutModules(t *testing.T) {
	Needs(t)
	k, err := Find()
	require.NoError(t, err)
	k.Modules = t.TempDir()
	r, err := Run(t.Context(), Options{Faults: []string{guest.NFS, "disk-error"}, Kernel: k, Parallel: 1})
	require.NoError(t, err)
	require.Empty(t, r.Rows)
	require.Len(t, r.Skipped, 2)
	require.Contains(t, r.Skipped[1].Why, "module nfsd is not in "+k.Modules)
	require.Contains(t, r.Skipped[0].Why, "module dm_mod is not in "+k.Modules)
}
