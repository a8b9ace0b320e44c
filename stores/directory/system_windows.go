package directory

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	supported = true
	checkMode = false // access is by lists, which the parent directory hands down
	readLocks = true  // a file that somebody has open cannot be replaced
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
	moveFileEx   = kernel32.NewProc("MoveFileExW")
)

const (
	lockExclusive   = 2
	failImmediately = 1
	replaceExisting = 1
	writeThrough    = 8

	errorLockViolation = syscall.Errno(33)
)

// lockFile locks an open file without waiting. The lock belongs to this opening of
// it, so it excludes others in the same process too.
func lockFile(f *os.File) error {
	var overlapped syscall.Overlapped
	ok, _, err := lockFileEx.Call(f.Fd(), lockExclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&overlapped)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return errBusy
	}
	return err
}

func unlockFile(f *os.File) error {
	var overlapped syscall.Overlapped
	ok, _, err := unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&overlapped)))
	if ok != 0 {
		return nil
	}
	return err
}

// rename returns when the new name is on the disk.
func rename(from, to string) error {
	a, err := syscall.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	b, err := syscall.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	ok, _, err := moveFileEx.Call(uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b)), replaceExisting|writeThrough)
	if ok != 0 {
		return nil
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

// A directory cannot be synced; rename has done what there is to do.
func syncDir(string) error { return nil }

func ownedByUs(fs.FileInfo) (owner string, mine bool) { return "", true }
