package vmclock

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/vmclock/vmclocktest"
)

func TestOpen(t *testing.T) {
	for name, test := range map[string]struct {
		bytes  map[int]byte // of the page
		marker int          // where it is
		by     string
		err    string
	}{
		"live migration too":       {nil, disruptionAt, "disruption_marker", ""},
		"copies only":              {map[int]byte{flagsAt + 1: 1}, generationAt, "vm_generation_counter", ""},
		"too short for the flag":   {map[int]byte{flagsAt + 1: 1, 4: 104}, disruptionAt, "disruption_marker", ""},
		"another device":           {map[int]byte{0: 'X'}, 0, "", "it is no VMClock: its magic is 0x4b4c4358, want 0x4b4c4356"},
		"a later version":          {map[int]byte{8: 2}, 0, "", "its version is 2 and its size 112, want version 1"},
		"no flags":                 {map[int]byte{4: 31}, 0, "", "its size 31"},
		"written for ever":         {map[int]byte{sequenceAt: 3}, 0, "", "being written in 1000 reads"},
		"written, and another one": {map[int]byte{sequenceAt: 3, 0: 0}, 0, "", "no VMClock"},
	} {
		t.Run(name, func(t *testing.T) {
			d := vmclocktest.New(t)
			for at, b := range test.bytes {
				d.Set(at, b)
			}
			p, err := Open(d.Path, slog.New(slog.DiscardHandler))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, d.Path+", "+test.by, p.By)
			before := p.Marker.Load()
			d.Set(test.marker, 77)
			assert.NotEqual(t, before, p.Marker.Load())
		})
	}
	short := vmclocktest.New(t).Path
	_, err := Open(short+"no", slog.New(slog.DiscardHandler))
	assert.ErrorIs(t, err, os.ErrNotExist, "a device that was named")
	require.NoError(t, os.Truncate(short, 112))
	_, err = Open(short, slog.New(slog.DiscardHandler))
	assert.ErrorContains(t, err, "has 112 bytes, want 4096")
}

// TestOpenFirst guards that a device that cannot be used is told of, and keeps no process from starting.
func TestOpenFirst(t *testing.T) {
	defer func(before string) { devices = before }(devices)
	for said, spoil := range map[string]func(*testing.T, *vmclocktest.Device){
		"INFO msg=\"vmclock: copies of this machine's memory are noticed\"": func(*testing.T, *vmclocktest.Device) {},
		"INFO msg=\"vmclock: copies of this machine's memory are not noticed: there is no ": func(t *testing.T, d *vmclocktest.Device) {
			require.NoError(t, os.Remove(d.Path))
		},
		"WARN msg=\"vmclock: copies of this machine's memory are not noticed\"": func(_ *testing.T, d *vmclocktest.Device) { d.Set(8, 2) },
		"by a udev rule": func(t *testing.T, d *vmclocktest.Device) {
			if os.Geteuid() == 0 {
				t.Skip("root may read all")
			}
			require.NoError(t, os.Chmod(d.Path, 0))
		},
	} {
		t.Run(said, func(t *testing.T) {
			d := vmclocktest.New(t)
			spoil(t, d)
			var log bytes.Buffer
			devices, pages.by = d.Path, nil
			p, err := Open("", slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			again, err := Open(Auto, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			assert.Same(t, p, again)
			assert.Equal(t, 1, strings.Count(log.String(), said), "each keeper and sequence opens it, and the log tells once")
			assert.Equal(t, strings.Contains(log.String(), "are noticed"), p.By != "")
		})
	}
}
