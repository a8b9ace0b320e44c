package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tickflake/tickflake/lease"
)

// TryLock locks the cell of a node number from 0 to 2²²-1, or returns an error that
// wraps [lease.ErrLocked] if it is locked. Other errors are a [*FileError], or wrap the
// context's if that had ended before. The lock ends with unlock or with the process. It
// is the Store's, not the goroutine's.
func (s *Store) TryLock(ctx context.Context, node int64) (unlock func(), err error) {
	if err := checkNode(node); err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	unlock, err = tryLock(s.file(node, holdFile))
	if errors.Is(err, errBusy) {
		return nil, fmt.Errorf("cell of node %d in %s: %w", node, s.path, lease.ErrLocked)
	}
	return unlock, err
}

// errBusy says that another has locked a file.
var errBusy = errors.New("file is locked")

// tryLock locks a file, which it makes if need be, and which nobody ever removes: a
// lock on a file that has no name any more would exclude nobody.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return nil, wrap("open", path, err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errBusy) {
			return nil, err
		}
		return nil, wrap("lock", path, err)
	}
	return sync.OnceFunc(func() {
		// First, as a process that is just being started may have the file open, too.
		_ = unlockFile(f)
		_ = f.Close()
	}), nil
}

const (
	firstTry = 100 * time.Microsecond
	lastTry  = 5 * time.Millisecond
)

// waitLock locks a file that others lock only for the time of a Swap. The systems
// have no wait for a lock that a context could end, so it tries again and again.
func (s *Store) waitLock(ctx context.Context, path string) (unlock func(), err error) {
	var timer *time.Timer
	for wait := firstTry; ; wait = min(wait*2, lastTry) {
		unlock, err := tryLock(path)
		if !errors.Is(err, errBusy) {
			return unlock, err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ended(ctx))
		case <-timer.C:
		}
	}
}

// ended returns an error if the context has ended, which wraps its error and cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// await runs f, which works on files, and returns what it does, or when the context
// has ended. Then f is left to finish by itself: a disk that hangs cannot be told to
// stop.
func await[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ended(ctx); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		value, err := f(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // it was in time, or nearly
		return r.value, r.err
	default:
		return none, fmt.Errorf("the disk has not answered: %w", ended(ctx))
	}
}
