//go:build linux

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is a file that the soak and a server have in their memory.
type page struct {
	offset     atomic.Int64 // of the server's wall clock, in nanoseconds; the soak writes it
	goroutines atomic.Int64 // the server writes it
}

// openPage maps the file, which it makes if there is none, until the process ends.
func openPage(path string) (*page, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the mapping stays
	size := int(unsafe.Sizeof(page{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return (*page)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

// steppedClock is the machine's wall clock and the offset of a page. It is a
// [monoclock.Interface] and a [monoclock.Source].
type steppedClock struct {
	*page
	began time.Time
}

func (c steppedClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}

func (c steppedClock) Wall() time.Time                        { return c.Now() }
func (c steppedClock) Elapsed() time.Duration                 { return time.Since(c.began) }
func (c steppedClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
