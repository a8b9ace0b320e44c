//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	supported = true
	checkMode = true
	readLocks = false // a process that has a replaced file open still reads the old one
)

const errDiskFull = syscall.ENOSPC

// lockFile locks an open file without waiting. The lock belongs to this opening of
// it, so it excludes others in the same process too.
func lockFile(f *os.File) error {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errBusy
	}
	return err
}

func unlockFile(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func rename(from, to string) error { return os.Rename(from, to) }

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// ownedByUs returns the owner of a file, and whether the process runs as that user.
func ownedByUs(info fs.FileInfo) (owner string, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "an unknown user", false
	}
	return fmt.Sprintf("user %d", stat.Uid), int(stat.Uid) == os.Geteuid()
}
