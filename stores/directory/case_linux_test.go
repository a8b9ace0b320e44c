package directory

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/disktest"
)

// Windows, macOS and vfat ignore case.
func TestConformanceWithoutCase(t *testing.T) {
	dir := disktest.WithoutCase(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "Same"), 0o700))
	_, err := os.Stat(filepath.Join(dir, "sAME"))
	require.NoError(t, err, "the file system heeds case")
	conforms(t, dir)
}
