package vmclock

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func mapPage(device string) ([]byte, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if s, err := f.Stat(); err == nil && s.Mode().IsRegular() && s.Size() < pageSize {
		return nil, fmt.Errorf("%s has %d bytes, want %d", device, s.Size(), pageSize) // reading beyond the end kills the process
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, pageSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: device, Err: err}
	}
	return page, nil
}
