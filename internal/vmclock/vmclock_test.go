package vmclock

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/vmclock/vmclocktest"
)

// fifo puts a FIFO in the place of a device.
func fifo(d *vmclocktest.Device) error {
	if err := os.Remove(d.Path); err != nil {
		return err
	}
	return exec.Command("mkfifo", d.Path).Run()
}

// TestHandlerOpens guards that a handler of the log may open the same page: one that stamps its lines with IDs does.
func TestHandlerOpens(t *testing.T) {
	defer func(before string) { devices, pages = before, map[string]*Page{} }(devices)
	devices, pages = vmclocktest.New(t).Path+"*", map[string]*Page{}
	lines := 0
	var log *slog.Logger
	log = slog.New(slog.NewTextHandler(writer(func([]byte) (int, error) {
		lines++
		_, err := Open(Auto, log)
		return 0, err
	}), nil))
	_, err := Open(Auto, log)
	require.NoError(t, err)
	assert.Equal(t, 1, lines)
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestOpen guards that a device that cannot be used is told of, and keeps no process from starting that has not named it.
func TestOpen(t *testing.T) {
	defer func(before string) { devices, pages = before, map[string]*Page{} }(devices)
	type device = *vmclocktest.Device
	set := func(at int64, b byte) func(device) error { return func(d device) error { d.Set(at, b); return nil } }
	for name, test := range map[string]struct {
		spoil  func(device) error
		marker int64  // where it is; 0: there is no device that can be used
		by     string // of it, or the end of the error
		said   string // of the first device
	}{
		"live migration too":     {set(4, 112), disruptionAt, ", disruption_marker", "INFO .* are noticed\" by="},
		"copies only":            {set(flagsAt+1, 1), generationAt, ", vm_generation_counter", "INFO .* are noticed\" by="},
		"too short for the flag": {func(d device) error { d.Set(flagsAt+1, 1); d.Set(4, 104); return nil }, disruptionAt, ", disruption_marker", "INFO .* are noticed\" by="},
		"another device":         {set(0, 'X'), 0, ` is no VMClock: it begins with "XCLK", want "VCLK"`, "WARN .* are not noticed\" err="},
		"a later version":        {set(8, 2), 0, " has version 2 and size 112, want version 1 and at least 32 bytes", "WARN .* are not noticed\" err="},
		"no flags":               {set(4, 31), 0, " has version 1 and size 31, want version 1 and at least 32 bytes", "WARN .* are not noticed\" err="},
		"written for ever":       {set(sequenceAt, 3), 0, " was being written in 1000 reads", "WARN .* are not noticed\" err="},
		"short":                  {func(d device) error { return os.Truncate(d.Path, 112) }, 0, " has 112 bytes, want 4096", "WARN .* are not noticed\" err="},
		"a FIFO":                 {fifo, 0, " is no device", "WARN .* are not noticed\" err="},
		"no device":              {func(d device) error { return os.Remove(d.Path) }, 0, ": no such file or directory", "INFO .* are not noticed: no .* is visible to this process"},
		"not for this user":      {func(d device) error { return os.Chmod(d.Path, 0) }, 0, ": permission denied", "INFO .* are not noticed: .* by a udev rule"},
	} {
		t.Run(name, func(t *testing.T) {
			d := vmclocktest.New(t)
			require.NoError(t, test.spoil(d))
			if name == "not for this user" {
				if f, err := os.Open(d.Path); err == nil {
					require.NoError(t, f.Close())
					t.Skip("root may read all")
				}
			}
			var log bytes.Buffer
			devices, pages = d.Path+"*", map[string]*Page{}
			first, err := Open("", slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			again, err := Open(Auto, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			assert.Same(t, first, again)
			assert.Equal(t, 1, strings.Count(log.String(), "vmclock: copies of"), "each keeper and sequence opens it, and the log tells once")
			assert.Regexp(t, "level="+test.said, log.String())
			off, err := Open(Off, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			assert.Same(t, none, off)
			assert.Contains(t, log.String(), "are not looked for (off)")
			p, err := Open(d.Path, slog.New(slog.DiscardHandler))
			if test.marker == 0 {
				require.ErrorContains(t, err, d.Path+test.by)
				assert.Same(t, none, first)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{d.Path + test.by, d.Path + test.by}, []string{p.By, first.By})
			before := p.Marker.Load()
			d.Set(test.marker, 77)
			assert.NotEqual(t, before, p.Marker.Load())
		})
	}
}
