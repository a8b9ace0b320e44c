package vmclock

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func mapPage(device string) ([]byte, error) {
	s, err := os.Stat(device)
	switch {
	case err != nil:
		return nil, err
	case !s.Mode().IsRegular() && s.Mode()&fs.ModeCharDevice == 0:
		return nil, fmt.Errorf("%s is no device", device) // to open a FIFO waits for who writes to it
	case s.Mode().IsRegular() && s.Size() < pageSize:
		return nil, fmt.Errorf("%s has %d bytes, want %d", device, s.Size(), pageSize) // reading beyond the end kills the process
	}
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	page, err := syscall.Mmap(int(f.Fd()), 0, pageSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: device, Err: err}
	}
	return page, nil
}
