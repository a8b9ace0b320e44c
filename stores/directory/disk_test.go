package directory

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

const key = "node/0000007"

// opened opens a directory on a disk, or the real one if that is nil.
func opened(t *testing.T, path string, d disk) *files {
	t.Helper()
	if d == nil {
		d = realDisk
	}
	s, err := open(path, d)
	require.NoError(t, err)
	return s
}

// state is the path of a directory that is not there yet.
func state(t *testing.T) string { return filepath.Join(t.TempDir(), "state") }

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value string) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, []byte(value))
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: []byte(value)}, nil
}

// written is swap that succeeds.
func written(t *testing.T, s stores.Store, old stores.Cell, value string) stores.Cell {
	t.Helper()
	cell, err := swap(t.Context(), s, old, value)
	require.NoError(t, err)
	return cell
}

// failing is a disk until a step, which fails in one of three ways: it does
// nothing, it is done and reported as failed, or half of it is done. If it is a crash,
// all later steps do nothing, too. Locks are not among its steps.
type failing struct {
	disk      disk
	step, way int // how many steps there are up to the one that fails
	crash     bool
	err       error
}

const never = 1 << 30

const (
	doesNothing = iota
	doneAndFails
	halfDone
	ways
)

func (f *failing) do(step, path string, do func() error) error {
	if step == "lock" || step == "unlock" {
		return do()
	}
	f.step--
	switch {
	case f.step > 0, f.step < 0 && !f.crash:
		return f.disk(step, path, do)
	case f.step < 0, f.way == doesNothing, f.way == halfDone && step != "write":
	case step == "create": // do would leave it open
		_ = f.disk(step, path, func() error { return os.WriteFile(path, nil, ownerOnly) })
	case f.disk(step, path, do) == nil && f.way == halfDone:
		info, _ := os.Stat(path)
		_ = os.Truncate(path, info.Size()/2)
	}
	return f.err
}

// nothingOpen checks that no file of a directory is open.
func nothingOpen(t *testing.T, s *files) {
	t.Helper()
	fds, _ := os.ReadDir("/proc/self/fd") // there is none but on Linux
	for _, fd := range fds {
		name, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		assert.NotContains(t, name, s.path)
	}
}

func TestErrorsOfTheDisk(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.ENOSPC: "free some space",
		syscall.EDQUOT: "free some space",
		syscall.EROFS:  "mount the file system for writing",
		syscall.EACCES: "it must be readable and writable",
		syscall.EIO:    "input/output error",
	} {
		dir := state(t)
		f := &failing{disk: realDisk, step: never, way: halfDone, err: &os.LinkError{Op: "rename", Old: dir, New: dir, Err: cause}}
		s := opened(t, dir, f.do)
		cell := written(t, s, stores.Cell{Key: key}, "old")
		f.step = 2 // the write
		_, err := swap(t.Context(), s, cell, "new")
		require.ErrorIs(t, err, cause)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, cause != syscall.EIO, stores.KindOf(err) == stores.Permanent, "%v", err)
		assert.ErrorContains(t, err, "directory "+dir+": swap node/0000007: write node+0000007.cell.tmp: "+cause.Error())
		assert.Equal(t, 1, strings.Count(err.Error(), dir), "%v", err)
		assert.NoFileExists(t, s.file(key, tempFile), "it would take up space")
		is, err := s.Read(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, cell, is)
	}
}

// volatile is a disk that forgets, in a power cut, what was not synced: what is in
// files, and the names of files since the last sync of their directory.
type volatile struct {
	random *rand.Rand
	synced map[string]bool // by the path of a file, as it is now
	undo   []func()        // of renames since then, the last one last
}

func (v *volatile) do(step, path string, do func() error) error {
	_, isFile := v.synced[path]
	switch {
	case step == "create" || step == "write":
		v.synced[path] = false
	case step == "rename":
		was, err := os.ReadFile(path)
		synced := v.synced[path]
		v.undo = append(v.undo, func() {
			v.synced[path] = synced
			if err == nil {
				_ = os.WriteFile(path, was, ownerOnly)
			} else {
				_ = os.Remove(path)
			}
		})
		v.synced[path] = v.synced[path+".tmp"]
	case step == "sync" && isFile:
		v.synced[path] = true
		return nil
	case step == "sync":
		v.undo = nil
		return nil
	}
	return do()
}

// cut is the power cut.
func (v *volatile) cut(t *testing.T) {
	// The names are lost from some rename on.
	keep := v.random.IntN(len(v.undo) + 1)
	for _, undo := range slices.Backward(v.undo[keep:]) {
		undo()
	}
	v.undo = nil
	for path, synced := range v.synced {
		info, err := os.Stat(path)
		if err != nil || synced {
			continue
		}
		require.NoError(t, os.Truncate(path, v.random.Int64N(info.Size()+1)))
		v.synced[path] = true
	}
}

// Each step of a Swap fails, or is the process's last, or the power is cut later. Whatever Swap has acknowledged and Read
// has shown is there then; the cell is a whole old one or the whole new one, and can be written. No file is left open.
func TestCrashesAndPowerCuts(t *testing.T) {
	cause := errors.New("the test makes it fail")
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 1))
		v := &volatile{random: random, synced: make(map[string]bool)}
		dir := state(t)
		var cell stores.Cell // which is relied on
		for life := range 5 {
			f := &failing{disk: v.do, step: never, err: cause}
			s := opened(t, dir, f.do)
			is, err := s.Read(t.Context(), key)
			require.NoError(t, err, "seed %d", seed)
			require.GreaterOrEqual(t, is.Version, cell.Version, "seed %d, life %d: what was relied on is lost", seed, life)
			if is.Version > 0 {
				before, err := strconv.ParseUint(string(is.Value), 10, 64)
				require.NoError(t, err, "seed %d", seed)
				require.True(t, before < is.Version && is.Version <= before+1<<32, "seed %d: version %d has the value of one after %d", seed, is.Version, before)
			}
			cell = is
			for range random.IntN(4) {
				f.step, f.way, f.crash = 1+random.IntN(10), random.IntN(ways), random.IntN(3) == 0 // a Swap has five steps
				next, err := swap(t.Context(), s, cell, strconv.FormatUint(cell.Version, 10))
				crashed := f.step <= 0 && f.crash
				if !crashed {
					f.step = never
				}
				if err == nil {
					cell = next
					continue
				}
				require.ErrorIs(t, err, cause, "seed %d", seed)
				reader := s
				if random.IntN(2) == 0 { // another process
					reader = opened(t, dir, v.do)
				}
				if is, err = reader.Read(t.Context(), key); err == nil {
					cell = is
				}
				require.True(t, err == nil || crashed && reader == s, "seed %d: %v", seed, err)
				if crashed {
					break
				}
			}
			nothingOpen(t, s)
			if random.IntN(2) == 0 {
				v.cut(t)
			}
		}
	}
}

// What a start and a write cost is counted in syncs. The names of directories are on the disk before
// anything in them is, whichever process has made them.
func TestSyncs(t *testing.T) {
	var synced []string // in root
	var problem error
	root := t.TempDir()
	d := func(step, path string, do func() error) error {
		if step != "sync" {
			return do()
		}
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		synced = append(synced, filepath.ToSlash(name))
		return problem
	}
	path := filepath.Join(root, "a", "b", "state")
	s := opened(t, path, d)
	cell := stores.Cell{Key: key}
	start := func() { s = opened(t, path, d) }
	again := func() { cell = written(t, s, cell, "value") }
	list := func() { _, err := s.List(t.Context(), "", "\x7f", 1<<30); require.NoError(t, err) }
	read := func() { _, err := s.Read(t.Context(), key); require.NoError(t, err) }
	both := []string{"a/b/state/node+0000007.cell.tmp", "a/b/state"}
	for i, step := range []struct {
		do   func()
		want []string
		why  string
	}{
		{func() {}, []string{".", "a", "a/b"}, "to make a directory"},
		{start, []string{"a/b"}, "a process that made it may have been killed before the name was synced"},
		{list, nil, "an empty list"},
		{read, nil, "no cell"},
		{again, both, "the first swap"},
		{again, both, "a swap"},
		{list, nil, "its own list"},
		{read, nil, "its own cell"},
		{start, nil, "to start again"},
		{list, nil, "a list, which guides only"},
		{read, both[1:], "a cell that others have written"},
		{read, nil, "the same again"},
		{again, both, "a swap"},
	} {
		step.do()
		assert.Equal(t, step.want, synced, "step %d, %s", i, step.why)
		synced = nil
	}
	for _, tt := range []struct {
		problem error
		path    string
		fails   bool
		why     string
	}{
		{syscall.EIO, "c", true, "the parent"},
		{syscall.EIO, "d/state", true, "a new parent"},
		{syscall.EACCES, "c", false, "a parent that we may not open was synced by the process that made the directory"},
		{syscall.EACCES, "e", true, "which is this one"},
	} {
		problem = tt.problem
		_, err := open(filepath.Join(root, tt.path), d)
		assert.Equal(t, tt.fails, errors.Is(err, tt.problem), "%s: %v", tt.why, err)
	}
}

// A disk that hangs in a step holds up no caller for longer than its context. A write that it
// makes later is conditional, and a lock that it makes too late is not kept.
func TestDiskHangs(t *testing.T) {
	lock := func(ctx context.Context, s *files) error {
		unlock, err := s.lockCell(ctx, key)
		if err == nil {
			unlock()
			unlock()
		}
		return err
	}
	write := func(ctx context.Context, s *files) error {
		_, err := swap(ctx, s, stores.Cell{Key: key}, "value")
		return err
	}
	for step, call := range map[string]func(context.Context, *files) error{"sync": write, "lock": lock, "unlock": lock} {
		synctest.Test(t, func(t *testing.T) {
			back, path := make(chan struct{}), state(t)
			_ = opened(t, path, nil) // which makes it
			s := opened(t, path, func(is, path string, do func() error) error {
				if is == step && filepath.Ext(path) != "" { // and not the sync of the parent
					<-back
				}
				return do()
			})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test is impatient"))
			defer cancel()
			begin := time.Now()
			err := call(ctx, s)
			if step == "unlock" {
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(begin), unlockTime+100*time.Millisecond, "it does not wait for the disk")
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, " node/0000007: no answer yet: context deadline exceeded: the test is impatient")
				assert.LessOrEqual(t, time.Since(begin), time.Minute+100*time.Millisecond)
			}
			other := opened(t, path, nil)
			if step == "sync" { // it has the cell's lock until it is done
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err = write(short, other)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			close(back)
			synctest.Wait()
			require.NoError(t, call(t.Context(), other), "it has ended, and changed nothing")
			nothingOpen(t, s)
		})
	}
}

// A process that is stopped in a write, as here by the test, holds up the writers of that cell
// alone, and only until their contexts end.
func TestLockedCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, state(t), nil)
		cell, file := stores.Cell{Key: key}, s.file(key, swapFile)
		unlock, err := tryLock(file)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = swap(ctx, s, cell, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "swap node/0000007: lock node+0000007.swap: it is locked, waited 1s: fuser names the process")
		is, err := s.Read(t.Context(), key)
		require.NoError(t, err)
		assert.Zero(t, is.Version)

		var waiting sync.WaitGroup
		var conflicts atomic.Int32
		for range 2 * maxCalls { // a call that waits for a lock has no place
			waiting.Go(func() {
				if _, err := swap(t.Context(), s, cell, ""); errors.Is(err, stores.ErrConflict) {
					conflicts.Add(1)
				}
			})
		}
		time.Sleep(time.Second) // of the bubble
		written(t, s, stores.Cell{Key: "node/0000008"}, "another cell")
		unlock()
		waiting.Wait()
		assert.EqualValues(t, 2*maxCalls-1, conflicts.Load())
	})
}
