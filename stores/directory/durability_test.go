//go:build linux

package directory

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// pretend makes the file system of every directory look like one of the number.
func pretend(t *testing.T, number uint32) {
	t.Helper()
	before := statfs
	statfs = func(string) (uint32, error) { return number, nil }
	t.Cleanup(func() { statfs = before })
}

// A network file system is refused, also by its number as a negative one, unless the URL accepts it. FUSE may be local and memory
// lasts as long as the host runs, so both are taken, and named.
func TestFileSystems(t *testing.T) {
	const forgets, risks, unknown, nothing = 0, 1, 2, 3
	for number, want := range map[uint32]int{
		0x6969: forgets, 0x517b: forgets, 0xfe534d42: forgets, 0xff534d42: forgets, 0x01021997: forgets, 0x00c36400: forgets,
		0x5346414f: forgets, 0x6b414653: forgets, 0x73757245: forgets, 0x0bd00bd0: forgets,
		0x01021994: risks, 0x858458f6: risks, 0x65735546: unknown, 0x794c7630: risks, 0xef53: nothing,
	} {
		pretend(t, number)
		path := t.TempDir()
		promises, err := stores.CheckDurability(t.Context(), opened(t, path, nil))
		require.NoError(t, err)
		for i, found := range [][]string{promises.Forgets, promises.Risks, promises.Unknown} {
			assert.Equal(t, i == want, len(found) == 1, "%x: %v", number, promises)
		}
		for _, url := range []string{path, "file:" + path, "file:" + path + "?namespace=n"} {
			_, err = stores.Open(t.Context(), url)
			assert.Equal(t, want == forgets, errors.Is(err, stores.ErrForgets), "%x: %v", number, err)
		}
		store, err := stores.Open(t.Context(), "file:"+path+"?forgetful=allow&namespace=n")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(path, "n"), store.(*files).path)
	}
}

// What is seen by one container only is said, and only then.
func TestPrivate(t *testing.T) {
	const ext4, overlayfs = 0xef53, 0x794c7630
	for _, tt := range []struct {
		system uint32
		pod    string
		want   string
	}{{ext4, "", ""}, {ext4, "10.0.0.1", "runs under Kubernetes"}, {overlayfs, "", "own layer"}, {overlayfs, "10.0.0.1", "own layer"}} {
		pretend(t, tt.system)
		t.Setenv("KUBERNETES_SERVICE_HOST", tt.pod)
		says := opened(t, t.TempDir(), nil).Traits().Private(t.Context())
		assert.Equal(t, tt.want == "", says == "", says)
		assert.Contains(t, says, tt.want)
	}
}

// The kernel is asked: procfs is none of the known kinds, and /dev/shm is in memory.
func TestFileSystem(t *testing.T) {
	name, kept, err := fileSystem("/proc")
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Equal(t, local, kept)
	_, _, err = fileSystem(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	if name, kept, err = fileSystem("/dev/shm"); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /dev/shm here")
	}
	require.NoError(t, err)
	assert.Equal(t, "tmpfs", name)
	assert.Equal(t, memory, kept)
}
