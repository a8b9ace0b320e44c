package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/tickflake/tickflake/lease"
)

// CorruptError reports the file of a cell that is not as it was written: empty, cut
// off, damaged, or in a format that another version of this package has written.
// Nothing has overwritten it.
type CorruptError struct {
	Path    string
	Node    int64
	Problem string // what is wrong with it
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("cell of node %d: %s: %s; it is left as it is, and node %d cannot be used. Move it away only if the clock is later than any ID that node %d has issued",
		e.Node, e.Path, e.Problem, e.Node, e.Node)
}

// Is reports whether target is lease.ErrDamaged.
func (e *CorruptError) Is(target error) bool { return target == lease.ErrDamaged }

// DirectoryError reports a directory that cannot keep cells, or not safely.
type DirectoryError struct {
	Path    string
	Mode    fs.FileMode // 0 if it is not known
	Problem string      // what is wrong with it, and what to do
	Err     error       // the system's error, or nil
}

func (e *DirectoryError) Error() string {
	s := fmt.Sprintf("state directory %q: %s", e.Path, e.Problem)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the system's error, or nil.
func (e *DirectoryError) Unwrap() error { return e.Err }

// FileError reports an operation on a file that failed. If it was part of a Swap, it
// is unknown whether the value was written, but the cell is the old one or the new
// one.
type FileError struct {
	Op   string // open, read, lock, create, write, sync, close, rename or "sync directory"
	Path string
	Err  error // the system's error
}

func (e *FileError) Error() string {
	err := e.Err
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // it would repeat the path
	}
	return fmt.Sprintf("%s %s: %v%s", e.Op, e.Path, err, e.advice())
}

// Unwrap returns the system's error.
func (e *FileError) Unwrap() error { return e.Err }

// advice says what to do about it.
func (e *FileError) advice() string {
	switch {
	case errors.Is(e.Err, syscall.ENOSPC):
		return "; free some space"
	case errors.Is(e.Err, syscall.EROFS):
		return "; mount the file system for writing, or name another directory"
	case errors.Is(e.Err, fs.ErrPermission):
		return "; it must be readable and writable for the user that this process runs as"
	case errors.Is(e.Err, fs.ErrNotExist):
		return "; was the directory removed while it was in use?"
	}
	return ""
}

// NotSupportedError reports a system without file locks that this package knows. It
// wraps [errors.ErrUnsupported].
type NotSupportedError struct {
	System string // the operating system, as in GOOS
}

func (e *NotSupportedError) Error() string {
	return fmt.Sprintf("no file locks on %s: keep leases in another store", e.System)
}

// Unwrap returns [errors.ErrUnsupported].
func (e *NotSupportedError) Unwrap() error { return errors.ErrUnsupported }
