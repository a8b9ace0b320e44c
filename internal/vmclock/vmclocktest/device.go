// Package vmclocktest has a file in place of a VMClock device.
package vmclocktest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Device is a file that can be mapped as the page of a device.
type Device struct {
	Path string
	t    testing.TB
	page []byte
}

// New makes a device whose only marker is the disruption_marker.
func New(t testing.TB) *Device {
	if runtime.GOOS != "linux" {
		t.Skip("no device can be mapped on " + runtime.GOOS)
	}
	d := &Device{filepath.Join(t.TempDir(), "vmclock0"), t, make([]byte, 4096)}
	copy(d.page, "VCLK")
	binary.LittleEndian.PutUint32(d.page[4:], 112)
	d.page[8], d.page[16], d.page[104] = 1, 5, 9
	d.Set(0, 'V')
	return d
}

// Set changes a byte of the page.
func (d *Device) Set(at int, b byte) {
	d.page[at] = b
	f, err := os.OpenFile(d.Path, os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(d.t, err)
	_, err = f.WriteAt(d.page, 0)
	require.NoError(d.t, err)
	require.NoError(d.t, f.Close())
}

// Copy changes what a copy of the memory finds changed.
func (d *Device) Copy() { d.Set(16, d.page[16]+1) }
