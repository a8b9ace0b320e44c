package directory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// unlockTime is how long unlock waits for a disk that hangs.
const unlockTime = time.Second

// lockCell locks the cell of a key, or returns an error that wraps [stores.ErrLocked] if
// it is locked. The lock ends with unlock or with the process. It belongs to the Store,
// not to a goroutine. If the disk hangs, unlock returns after a second, and the lock ends
// later.
func (s *files) lockCell(ctx context.Context, key string) (func(), error) {
	path := s.file(key, holdFile)
	type lock struct {
		unlock func()
		keep   func() bool // false if ctx has ended before
	}
	got, err := wait(ctx, s.path, func() (lock, error) {
		if err := stores.CheckKey(key); err != nil {
			return lock{}, err
		}
		unlock, err := s.lock(path)
		if errors.Is(err, errBusy) {
			err = stores.ErrLocked
		}
		if err != nil {
			return lock{}, s.ofCell(key, path, err)
		}
		unlock = brief(unlock)
		// What a disk that hangs has locked too late is unlocked.
		return lock{unlock, context.AfterFunc(ctx, unlock)}, nil
	})
	if err == nil && !got.keep() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, s.Failed(ctx, "lock", key, err)
	}
	return got.unlock, nil
}

// brief returns an unlock that waits for the disk no longer than unlockTime. It takes no
// place among the calls of the directory: if none is free, it must unlock all the same.
func brief(unlock func()) func() {
	return sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
		defer cancel()
		_, _ = engine.Wait(ctx, func() (struct{}, error) {
			unlock()
			return struct{}{}, nil
		})
	})
}

// errBusy says that another opening of a file has locked it.
var errBusy = errors.New("it is locked")

// lock is tryLock as a step of the disk.
func (s *files) lock(path string) (func(), error) {
	var unlock func()
	err := s.disk("lock", path, func() (err error) { unlock, err = tryLock(path); return err })
	return func() { _ = s.disk("unlock", path, func() error { unlock(); return nil }) }, err
}

// tryLock locks a file, and makes the file if there is none. No process ever removes it: a
// lock on a removed file would exclude no other process.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return nil, failedFile("open "+filepath.Base(path), err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, failedFile("lock "+filepath.Base(path), err)
	}
	return sync.OnceFunc(func() {
		// A child process that is just starting may have the file open, too, so closing
		// it alone would not unlock it.
		_ = unlockFile(f)
		_ = f.Close()
	}), nil
}

// lockSwap locks the swapFile of a cell, which others lock only during a Swap.
func (s *files) lockSwap(key string) (unlock func(), err error) {
	path := s.file(key, swapFile)
	unlock, err = s.lock(path)
	return unlock, s.ofCell(key, path, err)
}
