package machine

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibrariesOfAProgram(t *testing.T) {
	const program = "/bin/sh" // dynamic on Debian
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the programs of this host have no libraries for the machine")
	}
	libs, err := libraries(program)
	require.NoError(t, err)
	if len(libs) == 0 {
		t.Skip(program + " is static")
	}
	require.Contains(t, libs, "/lib64/ld-linux-x86-64.so.2")
	require.Contains(t, strings.Join(slices.Collect(maps.Values(libs)), " "), "/libc.so.6")
	for _, p := range slices.Collect(maps.Values(libs)) {
		require.FileExists(t, p)
	}
}

// install makes an empty kernel.
func install(t *testing.T, dir, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "boot"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib", "modules", version), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "boot", "vmlinuz-"+version), nil, 0o600))
}

func TestFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*")
	t.Setenv("TICKFLAKE_KERNEL", dir)
	_, err := Find()
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "linux-image-cloud-amd64")

	install(t, dir, "6.1.0-9-cloud-amd64")
	install(t, dir, "6.1.0-56-cloud-amd64")
	install(t, dir, "6.9.0-1-amd64")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "boot", "vmlinuz-7.1.0-1-cloud-amd64"), nil, 0o600), "an image without modules")
	k, err := Find()
	require.NoError(t, err)
	require.Equal(t, Kernel{
		Image:   filepath.Join(dir, "boot", "vmlinuz-6.1.0-56-cloud-amd64"),
		Modules: filepath.Join(dir, "lib", "modules", "6.1.0-56-cloud-amd64"),
		Version: "6.1.0-56-cloud-amd64",
	}, k)
}

func TestHostWithoutQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	want := "qemu-system-x86"
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		want = "linux/amd64"
	}
	_, err := Boot(t.Context(), Config{})
	require.ErrorContains(t, err, want)
	_, err = Version(t.Context())
	require.ErrorContains(t, err, want)
	_, err = Fetch(t.Context(), nil)
	require.ErrorContains(t, err, "linux-image-cloud-amd64")
}
