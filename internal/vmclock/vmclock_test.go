package vmclock

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// device writes the page of a device to a file.
func device(t *testing.T, change func(page []byte)) string {
	if runtime.GOOS != "linux" {
		t.Skip("no device can be mapped on " + runtime.GOOS)
	}
	page := make([]byte, pageSize)
	copy(page, "VCLK")
	binary.LittleEndian.PutUint32(page[4:], 112)
	page[8], page[disruptionAt], page[generationAt] = 1, 5, 9
	change(page)
	path := filepath.Join(t.TempDir(), "vmclock0")
	require.NoError(t, os.WriteFile(path, page, 0o600))
	return path
}

func TestOpen(t *testing.T) {
	generation := func(page []byte) { page[flagsAt+1] = 1 }
	for name, test := range map[string]struct {
		change func(page []byte)
		marker byte // where it is
		by     string
		err    string
	}{
		"live migration too":       {func([]byte) {}, disruptionAt, "disruption_marker", ""},
		"copies only":              {generation, generationAt, "vm_generation_counter", ""},
		"too short for the flag":   {func(page []byte) { generation(page); page[4] = 104 }, disruptionAt, "disruption_marker", ""},
		"another device":           {func(page []byte) { page[0] = 'X' }, 0, "", "it is no VMClock: its magic is 0x4b4c4358, want 0x4b4c4356"},
		"a later version":          {func(page []byte) { page[8] = 2 }, 0, "", "its version is 2 and its size 112, want version 1"},
		"no flags":                 {func(page []byte) { page[4] = 31 }, 0, "", "its size 31"},
		"written for ever":         {func(page []byte) { page[sequenceAt] = 3 }, 0, "", "being written in 1000 reads"},
		"written, and another one": {func(page []byte) { page[sequenceAt], page[0] = 3, 0 }, 0, "", "no VMClock"},
	} {
		t.Run(name, func(t *testing.T) {
			path := device(t, test.change)
			p, err := Open(path, slog.New(slog.DiscardHandler))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, path+", "+test.by, p.By())
			before := p.Marker().Load()
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{77}, int64(test.marker))
			require.NoError(t, err)
			require.NoError(t, f.Close())
			assert.NotEqual(t, before, p.Marker().Load())
		})
	}
	_, err := Open(device(t, func([]byte) {})+"no", slog.New(slog.DiscardHandler))
	assert.ErrorIs(t, err, os.ErrNotExist, "a device that was named")
	short := device(t, func([]byte) {})
	require.NoError(t, os.Truncate(short, 112))
	_, err = Open(short, slog.New(slog.DiscardHandler))
	assert.ErrorContains(t, err, "has 112 bytes, want 4096")
}

// TestOpenOnce guards that each keeper and sequence of a process has the same page, and that the log tells of it once.
func TestOpenOnce(t *testing.T) {
	var log bytes.Buffer
	path := device(t, func([]byte) {})
	first, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	second, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	assert.Same(t, first, second)
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("are noticed")))
	off, err := Open(Off, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.Empty(t, off.By())
}
