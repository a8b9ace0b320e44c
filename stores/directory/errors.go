package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/tickflake/tickflake/stores"
)

// ErrUnfit is wrapped by the error for a directory that cannot keep cells safely: it
// belongs to another user, others may write to it, it is not a directory, or it cannot be
// made or read. The text says what to do.
var ErrUnfit = stores.Permanent.New("not fit for a store")

// unfit returns the error of Open for a directory.
func unfit(path, problem string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == path { // and not a parent's
		err = e.Err
	}
	return fmt.Errorf("state directory %q is %w", path, unfitFor(problem, err))
}

// unfitFor is unfit without the path, which the error of an operation has already.
func unfitFor(problem string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: it %s", ErrUnfit, problem)
	}
	return fmt.Errorf("%w: it %s: %w", ErrUnfit, problem, err)
}

// causeOf returns an error without the paths that it would repeat.
func causeOf(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// failedFile returns the error of an operation on a file, with advice, or nil if err is
// nil. The error of an operation of a Store has the path of the directory already.
func failedFile(op string, err error) error {
	if err == nil {
		return nil
	}
	err = causeOf(err)
	var advice error
	switch {
	case errors.Is(err, errDiskFull), errors.Is(err, syscall.EDQUOT):
		advice = stores.Permanent.New("free some space")
	case errors.Is(err, syscall.EROFS):
		advice = stores.Permanent.New("mount the file system for writing, or name another directory")
	case errors.Is(err, fs.ErrPermission):
		advice = stores.Permanent.New("it must be readable and writable for the user that this process runs as")
	case errors.Is(err, fs.ErrNotExist):
		advice = errors.New("was the directory removed while it was in use?")
	default:
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w; %w", op, err, advice)
}

// ofCell returns the error of an operation on a file of a cell, and makes it a
// [*stores.DamagedError] if the file itself is the reason, so that other cells can still
// be used.
func (s *files) ofCell(key, path string, err error) error {
	if err == nil {
		return nil
	}
	info, gone := os.Lstat(path)
	if gone == nil && (!info.Mode().IsRegular() || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO)) {
		return &stores.DamagedError{Key: key, Problem: "its file cannot be used; give it back to this user, or remove it if it is not the " + cellFile + " file", Err: err}
	}
	return err
}
