package machine

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// debian puts stand-ins for Debian's programs first in PATH.
func debian(t *testing.T, programs map[string]string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins for Debian's programs are shell scripts")
	}
	dir := t.TempDir()
	for name, script := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestFetch(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "c"))
	t.Setenv("TICKFLAKE_KERNEL", "")
	programs := map[string]string{
		"apt-cache": "echo 'linux-image-cloud-amd64'; echo '  Depends: linux-image-6.1.0-57-cloud-amd64'; echo 'Size: 31900000'",
		"apt-get":   "test \"$1 $2\" = 'download linux-image-6.1.0-57-cloud-amd64' && echo content >\"$2_6.1_amd64.deb\"",
		"dpkg-deb":  "grep -q content \"$2\" && cd \"$3\" && mkdir -p boot lib/modules/6.1.0-57-cloud-amd64 usr && cp \"$2\" boot/vmlinuz-6.1.0-57-cloud-amd64",
	}
	debian(t, programs)
	dir, err := cache()
	require.NoError(t, err)
	install(t, dir, "6.1.0-9-cloud-amd64") // an older one stays
	// One that was interrupted between its two steps.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib", "modules", "6.1.0-57-cloud-amd64", "kernel"), 0o700))
	var said []string
	k, err := Fetch(t.Context(), func(text string) { said = append(said, text) })
	require.NoError(t, err)
	require.Equal(t, []string{"downloads the kernel 6.1.0-57-cloud-amd64, 31 MB"}, said)
	require.Equal(t, filepath.Join(dir, "boot", "vmlinuz-6.1.0-57-cloud-amd64"), k.Image)
	image, err := os.ReadFile(k.Image)
	require.NoError(t, err)
	require.Equal(t, "content\n", string(image))
	found, err := Find()
	require.NoError(t, err)
	require.Equal(t, k, found)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "boot"), filepath.Join(dir, "lib")}, left)

	debian(t, map[string]string{"apt-get": "exit 1"})
	again, err := Fetch(t.Context(), nil)
	require.NoError(t, err, "it is there, and is not downloaded again")
	require.Equal(t, k, again)
}

func TestFetchFails(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("TICKFLAKE_KERNEL", "")
	fails := func(want string, programs map[string]string) {
		t.Helper()
		debian(t, programs)
		_, err := Fetch(t.Context(), nil)
		require.ErrorContains(t, err, want)
		dir, err := cache()
		require.NoError(t, err)
		_, ok := kernelIn(dir)
		require.False(t, ok)
		left, err := filepath.Glob(filepath.Join(dir, "download-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	fails("run apt-get update", map[string]string{"apt-cache": "exit 0", "apt-get": "exit 0", "dpkg-deb": "exit 0"})
	fails("boom", map[string]string{"apt-cache": "echo boom >&2; exit 100"})
	const known = "echo '  Depends: linux-image-6.1.0-57-cloud-amd64'"
	fails("left 0 packages", map[string]string{"apt-cache": known})
	fails("no network", map[string]string{"apt-get": "echo no network >&2; exit 1"})
	fails("damaged", map[string]string{"apt-get": "echo >x.deb", "dpkg-deb": "mkdir boot; echo damaged >&2; exit 2"})
	fails("lib", map[string]string{"dpkg-deb": "mkdir boot; touch boot/vmlinuz-6.1.0-57-cloud-amd64"})

	debian(t, map[string]string{"apt-get": "exec sleep 600"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Fetch(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}
