// Package vmclocktest has a file in place of a VMClock device.
package vmclocktest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Device is a file that can be mapped as the page of a device.
type Device struct {
	Path   string
	t      testing.TB
	copies byte
}

// New makes a device whose only marker is the disruption_marker.
func New(t testing.TB) *Device {
	if runtime.GOOS != "linux" {
		t.Skip("no device can be mapped on " + runtime.GOOS)
	}
	page := make([]byte, 4096)
	copy(page, "VCLK\x70\x00\x00\x00\x01") // its size, and its version
	d := &Device{Path: filepath.Join(t.TempDir(), "vmclock0"), t: t}
	require.NoError(t, os.WriteFile(d.Path, page, 0o600))
	return d
}

// Set changes a byte of the page.
func (d *Device) Set(at int, b byte) {
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	require.NoError(d.t, err)
	_, err = f.WriteAt([]byte{b}, int64(at))
	require.NoError(d.t, err)
	require.NoError(d.t, f.Close())
}

// Copy changes what a copy of the memory finds changed.
func (d *Device) Copy() {
	d.copies++
	d.Set(16, d.copies)
}
