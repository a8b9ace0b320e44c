package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// A disk that hangs holds up no caller for longer than its context, and a write that it
// makes later is conditional.
func TestDiskHangs(t *testing.T) {
	d := realDisk
	hung, back := make(chan struct{}), make(chan struct{})
	d.sync = func(f *os.File) error {
		close(hung)
		<-back
		return f.Sync()
	}
	path := filepath.Join(t.TempDir(), "state")
	s, err := open(path, d)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-hung
		cancel(fmt.Errorf("the test is impatient"))
	}()
	_, err = swap(ctx, s, stores.Cell{Key: "node/0000007"}, []byte("value"))
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "directory "+path+": swap node/0000007: no answer yet: context canceled: the test is impatient")

	// It has the cell's lock until it is done.
	other, err := Open(t.Context(), path)
	require.NoError(t, err)
	short, cancelShort := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancelShort()
	_, err = swap(short, other, stores.Cell{Key: "node/0000007"}, []byte("other"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotContains(t, err.Error(), "locked by", "it is the same process, and the disk to blame")
	close(back)
	cell, err := swap(t.Context(), other, stores.Cell{Key: "node/0000007"}, []byte("other"))
	require.NoError(t, err, "the first one ended with its context")
	is, err := s.Read(t.Context(), "node/0000007")
	require.NoError(t, err)
	assert.Equal(t, cell, is)
}

// A lock that a disk makes too late is not kept.
func TestLockHangs(t *testing.T) {
	d := realDisk
	hung, back, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	d.lock = func(path string) (func(), error) {
		close(hung)
		<-back
		unlock, err := tryLock(path)
		return func() { unlock(); close(done) }, err
	}
	path := filepath.Join(t.TempDir(), "state")
	s, err := open(path, d)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	_, err = s.TryLock(ctx, "node/0000007")
	require.ErrorIs(t, err, context.Canceled)
	close(back)
	<-done
	other, err := Open(t.Context(), path)
	require.NoError(t, err)
	unlock, err := other.TryLock(t.Context(), "node/0000007")
	require.NoError(t, err)
	unlock()
}

// However often a caller tries again while the disk hangs, few calls wait for the disk, and
// another directory is not affected.
func TestFewCallsHang(t *testing.T) {
	d := realDisk
	var busy atomic.Int32
	hung := make(chan struct{})
	d.lock = func(path string) (func(), error) {
		assert.LessOrEqual(t, busy.Add(1), int32(maxCalls))
		defer busy.Add(-1)
		<-hung
		return tryLock(path)
	}
	s, err := open(filepath.Join(t.TempDir(), "state"), d)
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	for range 500 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
		_, err := swap(ctx, s, stores.Cell{Key: "node/0000007"}, []byte("value"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.TryLock(ctx, "node/0000007")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	eventually := func(condition func() bool, what string) {
		t.Helper()
		assert.Eventually(t, condition, 20*time.Second, time.Millisecond, what)
	}
	eventually(func() bool { return runtime.NumGoroutine() <= before+2*maxCalls }, "of 1000 calls few are left")

	// With every place taken, a call waits for one, and gets it when the disk is back.
	for busy.Load() < maxCalls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _ = swap(ctx, s, stores.Cell{Key: "node/0000007"}, nil)
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.List(ctx, "", "\x7f", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	other, err := Open(t.Context(), filepath.Join(t.TempDir(), "other"))
	require.NoError(t, err)
	_, err = swap(t.Context(), other, stores.Cell{Key: "node/0000007"}, nil)
	require.NoError(t, err)

	done := make(chan error)
	go func() {
		_, err := swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, nil)
		done <- err
	}()
	close(hung)
	require.NoError(t, <-done)
	eventually(func() bool {
		turns.Lock()
		defer turns.Unlock()
		return len(turns.of) == 0
	}, "and nothing is remembered of a directory without calls")
}

// An unlock does not wait for a disk that hangs.
func TestUnlockHangs(t *testing.T) {
	d := realDisk
	hung, done := make(chan struct{}), make(chan struct{})
	d.lock = func(path string) (func(), error) {
		unlock, err := tryLock(path)
		return sync.OnceFunc(func() { <-hung; unlock(); close(done) }), err
	}
	s, err := open(filepath.Join(t.TempDir(), "state"), d)
	require.NoError(t, err)
	unlock, err := s.TryLock(t.Context(), "node/0000007")
	require.NoError(t, err)
	unlock()
	unlock()
	close(hung)
	<-done
	other, err := Open(t.Context(), s.path)
	require.NoError(t, err)
	unlock, err = other.TryLock(t.Context(), "node/0000007")
	require.NoError(t, err, "it has unlocked")
	unlock()
}

// newStore returns a Store on a disk whose syncs take no time, and what counts them.
func newStore(t *testing.T) (s *Store, syncs *int) {
	syncs = new(int)
	d := realDisk
	d.sync = func(*os.File) error { *syncs++; return nil }
	d.syncDir = func(string) error { *syncs++; return nil }
	s, err := open(filepath.Join(t.TempDir(), "state"), d)
	require.NoError(t, err)
	return s, syncs
}

// What a start costs is counted in syncs: the rest takes no time worth mentioning.
func TestSyncs(t *testing.T) {
	s, syncs := newStore(t)
	assert.Equal(t, 1, *syncs, "to make a directory")
	took := func(want int, what string, do func() error) {
		t.Helper()
		*syncs = 0
		require.NoError(t, do())
		assert.Equal(t, want, *syncs, what)
	}
	cell := stores.Cell{Key: "node/0000000"}
	again := func() (err error) {
		cell, err = swap(t.Context(), s, cell, []byte("value"))
		return err
	}
	list := func() error { _, err := s.List(t.Context(), "", "\x7f", 1<<30); return err }
	read := func() error { _, err := s.Read(t.Context(), "node/0000000"); return err }
	took(0, "an empty list", list)
	took(2, "the first swap", again)
	took(2, "a swap", again)
	took(0, "its own list", list)
	took(0, "its own cell", read)
	took(0, "to start again", func() (err error) { s, err = open(s.path, s.disk); return err })
	took(1, "a list of what others have written", list)
	took(0, "a cell from the list", read)
	took(2, "a swap", again)
}

// The names of directories are on the disk before anything in them is, whoever has
// made them.
func TestSyncsOfParents(t *testing.T) {
	var synced []string
	d := realDisk
	d.syncDir = func(path string) error {
		synced = append(synced, path)
		return nil
	}
	root := t.TempDir()
	path := filepath.Join(root, "a", "b", "state")
	s, err := open(path, d)
	require.NoError(t, err)
	assert.Equal(t, []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b")}, synced)

	// Whoever made it may have been killed before its name was synced.
	synced = nil
	_, err = open(path, d)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(root, "a", "b")}, synced)
	_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, nil)
	require.NoError(t, err)
	synced = nil
	_, err = open(path, d)
	require.NoError(t, err)
	assert.Empty(t, synced)

	d.syncDir = func(string) error { return syscall.EIO }
	for _, path := range []string{filepath.Join(root, "c"), filepath.Join(root, "d", "state")} {
		_, err = open(path, d)
		assert.ErrorIs(t, err, syscall.EIO)
	}
	d.syncDir = func(string) error { return syscall.EACCES }
	_, err = open(filepath.Join(root, "c"), d)
	assert.NoError(t, err, "a parent that we may not open was synced by who made the directory")
	_, err = open(filepath.Join(root, "e"), d)
	assert.ErrorIs(t, err, syscall.EACCES, "which are we")
}

// A process that is stopped in a write, as here by the test, holds up the writers of that cell
// alone, and only until their contexts end. The error names it.
func TestLockedCell(t *testing.T) {
	s, _ := newStore(t)
	cell := stores.Cell{Key: "node/0000007"}
	unlock, err := tryLock(s.file(cell.Key, swapFile))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, os.WriteFile(s.file(cell.Key, swapFile), []byte("\nprocess 1 on host \"a\"\n"), ownerOnly))
	var tries atomic.Int32
	s.disk.lock = func(path string) (func(), error) {
		if tries.Add(1) == 2 {
			cancel()
		}
		return tryLock(path)
	}
	_, err = swap(ctx, s, cell, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `swap node/0000007: file is locked by process 1 on host "a", waited `)
	assert.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "waitLock")
	}, 10*time.Second, time.Millisecond)
	is, err := s.Read(t.Context(), cell.Key)
	require.NoError(t, err)
	assert.Zero(t, is.Version)
	eight, err := tryLock(s.file("node/0000008", swapFile))
	require.NoError(t, err)
	defer eight()
	_, err = s.disk.lock(s.file("node/0000008", swapFile))
	host, _ := os.Hostname()
	require.EqualError(t, err, fmt.Sprintf("file is locked by process %d on host %q", os.Getpid(), host))

	done := make(chan error)
	for range maxCalls {
		go func() {
			_, err := swap(t.Context(), s, cell, nil)
			done <- err
		}()
	}
	assert.Eventually(t, func() bool {
		turns.Lock()
		defer turns.Unlock()
		return turns.of[s.path] != nil && turns.of[s.path].calls == maxCalls
	}, 10*time.Second, time.Millisecond)
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = swap(ctx, s, stores.Cell{Key: "node/0000009"}, nil)
	assert.NoError(t, err, "another cell")
	unlock()
	conflicts := 0
	for range maxCalls {
		if errors.Is(<-done, stores.ErrConflict) {
			conflicts++
		}
	}
	assert.Equal(t, maxCalls-1, conflicts)
	text, err := os.ReadFile(s.file(cell.Key, swapFile))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "\n\n"), "no process has the lock now: %q", text)
}

// Whatever becomes of an operation, it leaves no file open.
func TestNoFileIsLeftOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("open files are listed in /proc on Linux, and this is %s", runtime.GOOS)
	}
	s, _ := newStore(t)
	for way := range ways {
		for step := range 7 {
			f := &failing{step: never, way: way, err: errStep}
			s.disk = f.disk()
			f.step = step + 1
			_, _ = swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("value"))
			_, _ = s.List(t.Context(), "", "\x7f", 1<<30)
			unlock, err := s.TryLock(t.Context(), "node/0000007")
			require.NoError(t, err)
			_, err = s.TryLock(t.Context(), "node/0000007")
			require.ErrorIs(t, err, stores.ErrLocked)
			unlock()
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		name, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		assert.NotContains(t, name, s.path)
	}
}

func BenchmarkSwap(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "state"))
	require.NoError(b, err)
	cell := stores.Cell{Key: "node/0000007"}
	for b.Loop() {
		if cell, err = swap(b.Context(), s, cell, []byte("about as long as a real value is, with an owner and a limit in it")); err != nil {
			b.Fatal(err)
		}
	}
}
