package vmclock

import (
	"bytes"
	"log/slog"
	"os"
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
			assert.Equal(t, d.Path+", "+test.by, p.By())
			before := p.Marker().Load()
			d.Set(test.marker, 77)
			assert.NotEqual(t, before, p.Marker().Load())
		})
	}
	short := vmclocktest.New(t).Path
	_, err := Open(short+"no", slog.New(slog.DiscardHandler))
	assert.ErrorIs(t, err, os.ErrNotExist, "a device that was named")
	require.NoError(t, os.Truncate(short, 112))
	_, err = Open(short, slog.New(slog.DiscardHandler))
	assert.ErrorContains(t, err, "has 112 bytes, want 4096")
}

// TestOpenOnce guards that each keeper and sequence of a process has the same page, and that the log tells of it once.
func TestOpenOnce(t *testing.T) {
	var log bytes.Buffer
	path := vmclocktest.New(t).Path
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
