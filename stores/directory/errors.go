package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/tickflake/tickflake/stores"
)

// ErrUnfit is wrapped by the error for a directory that cannot keep cells safely: it
// belongs to another user, others may write to it, it is not a directory, it cannot be
// made or read, or it is on a network file system. The text says what to do.
var ErrUnfit = stores.Refusal("not fit for cells")

func (s *Store) unfit(problem string, err error) error { return unfit(s.path, problem, err) }

func unfit(path, problem string, err error) error {
	if err == nil {
		return fmt.Errorf("state directory %q is %w: it %s", path, ErrUnfit, problem)
	}
	return fmt.Errorf("state directory %q is %w: it %s: %w", path, ErrUnfit, problem, err)
}

// failed returns the error of an operation.
func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	return stores.Failed(ctx, "directory "+s.path, op, key, "", err)
}

// failedFile returns the error of an operation on a file, with advice, or nil if err is
// nil.
func failedFile(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // it would repeat the path
	}
	var advice error
	switch {
	case errors.Is(err, syscall.ENOSPC):
		advice = errors.New("free some space")
	case errors.Is(err, syscall.EROFS):
		advice = stores.Refusal("mount the file system for writing, or name another directory")
	case errors.Is(err, fs.ErrPermission):
		advice = stores.Refusal("it must be readable and writable for the user that this process runs as")
	case errors.Is(err, fs.ErrNotExist):
		advice = errors.New("was the directory removed while it was in use?")
	default:
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return fmt.Errorf("%s %s: %w; %w", op, path, err, advice)
}

// ofCell returns the error of an operation on a file of a cell, and makes it a
// [*stores.DamagedError] if the file itself is the reason, so that other cells can still
// be used.
func (s *Store) ofCell(key, path string, err error) error {
	if err == nil {
		return nil
	}
	info, gone := os.Lstat(path)
	if gone == nil && (!info.Mode().IsRegular() || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO)) {
		return &stores.DamagedError{Key: key, Problem: "its file cannot be used; give it back to this user, or remove it if it is not the " + cellFile + " file", Err: err}
	}
	return err
}
