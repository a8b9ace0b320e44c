//go:build unix

// Package stepped is a wall clock that another process steps. A program with the clock is built
// from this file: see package program.
package stepped

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// SteppedBy is the variable with the path of the page of this process. Without it the clock is
// the machine's.
const SteppedBy = "TICKFLAKE_TEST_CLOCK"

// ReadsRaw is the variable that, if it is not empty, makes every reading one of the wall clock.
const ReadsRaw = "TICKFLAKE_TEST_RAW"

// Page is a file that two processes have in their memory.
type Page struct{ offset *atomic.Int64 }

// Open maps the file, which it makes if there is none, until the process ends.
func Open(path string) (Page, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Page{}, err
	}
	defer f.Close() //nolint:errcheck // the mapping stays
	const size = 8
	if err := f.Truncate(size); err != nil {
		return Page{}, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return Page{}, fmt.Errorf("map %s: %w", path, err)
	}
	return Page{(*atomic.Int64)(unsafe.Pointer(unsafe.SliceData(memory)))}, nil
}

// NewPage returns a page of this process alone.
func NewPage() Page { return Page{new(atomic.Int64)} }

// Step steps the wall clock.
func (p Page) Step(d time.Duration) { p.offset.Add(int64(d)) }

// Set makes the wall clock read so much more than the machine's.
func (p Page) Set(offset time.Duration) { p.offset.Store(int64(offset)) }

// Wall is the stepped time.
func (p Page) Wall() time.Time { return time.Now().Round(0).Add(time.Duration(p.offset.Load())) }

var began = time.Now()

// Elapsed is the time since the process began, by a clock that is never stepped.
func (p Page) Elapsed() time.Duration { return time.Since(began) }

// After is [time.After].
func (p Page) After(d time.Duration) <-chan time.Time { return time.After(d) }

// rawWall reports whether every reading is one of the wall clock.
//
//lint:ignore U1000 program.Build lays this file over package monoclock, which uses it
var rawWall = os.Getenv(ReadsRaw) != ""

// ofThisProcess is the clock of this process.
//
//lint:ignore U1000 as rawWall
var ofThisProcess = func() Page {
	p := NewPage()
	if path := os.Getenv(SteppedBy); path != "" {
		var err error
		if p, err = Open(path); err != nil {
			panic(err)
		}
	}
	return p
}()
