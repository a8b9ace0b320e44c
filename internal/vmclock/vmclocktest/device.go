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
	file   *os.File
	copies byte
}

// New makes a device whose only marker is the disruption_marker.
func New(t testing.TB) *Device {
	if runtime.GOOS != "linux" {
		t.Skip("no device can be mapped on " + runtime.GOOS)
	}
	path := filepath.Join(t.TempDir(), "vmclock0")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	require.NoError(t, file.Truncate(4096))
	d := &Device{Path: path, t: t, file: file}
	d.Set(0, []byte("VCLK\x70\x00\x00\x00\x01")...) // its size, and its version
	return d
}

// Set changes bytes of the page.
func (d *Device) Set(at int64, bytes ...byte) {
	_, err := d.file.WriteAt(bytes, at)
	require.NoError(d.t, err)
}

// Copy changes what a copy of the memory finds changed.
func (d *Device) Copy() {
	d.copies++
	d.Set(16, d.copies)
}
