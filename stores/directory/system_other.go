//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package directory

import (
	"errors"
	"io/fs"
	"os"
)

const (
	supported = false // so Open returns an error, and the functions below are not called
	checkMode = false
	readLocks = false
)

var errDiskFull = errors.ErrUnsupported

func lockFile(*os.File) error   { return errors.ErrUnsupported }
func unlockFile(*os.File) error { return errors.ErrUnsupported }

func rename(from, to string) error { return os.Rename(from, to) }
func syncDir(string) error         { return errors.ErrUnsupported }

func ownedByUs(fs.FileInfo) (owner string, mine bool) { return "", false }
