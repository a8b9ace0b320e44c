package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// The files of a cell, by the end of their names.
const (
	cellFile  = ".cell"
	tempFile  = ".cell.tmp" // of the process that has locked swapFile
	swapFile  = ".swap"
	holdFile  = ".hold"
	ownerOnly = 0o600
)

// Store is a [stores.Locker] on the files of a directory. Make one with [Open]. It is safe
// for use by several goroutines at once, and any number of Stores, in any number of
// processes on the host, can have the same directory.
//
// A Swap syncs a file and the directory. Read and List sync the directory if they
// find a cell that may not be on the disk yet, so all cells that they return
// survive a power cut. A method whose context ends returns at once with an
// error that wraps the context's, even if the disk hangs. The call then still waits for the
// disk, in a goroutine with a thread. A process has at most 16 such calls for each
// directory: further calls wait for one of them to end.
//
// If the file of a cell cannot be read as it was written, or its helper files cannot be
// used, the error is a [*stores.DamagedError]. Other cells are not affected.
type Store struct {
	path string
	disk disk

	mu     sync.Mutex
	synced map[string]uint64 // by key, the version that is known to be on the disk
}

var _ stores.Locker = (*Store)(nil)

// disk runs one step of a write or of a lock on the file or directory at a path: create, write, sync, rename,
// remove, lock or unlock. Tests make a step fail, hang, or be lost.
type disk func(step, path string, do func() error) error

func realDisk(_, _ string, do func() error) error { return do() }

// Path returns the absolute path of the directory.
func (s *Store) Path() string { return s.path }

// Close returns nil. A Store keeps open only the locks of TryLock, which end with
// their unlock functions.
func (s *Store) Close() error { return nil }

// List returns the cells with keys in [from, to), at most limit of them, in the order of
// their keys. It reads the names of all files, and the cells that it returns.
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if limit < 1 || from >= to {
		return nil, nil
	}
	return engine.List(ctx, s.failed, func() ([]stores.Cell, []error, error) {
		type listed struct {
			cells   []stores.Cell
			damaged []error
		}
		l, err := wait(ctx, s.path, func(c *call) (l listed, err error) {
			l.cells, l.damaged, err = s.list(c, from, to, limit)
			return l, err
		})
		return l.cells, l.damaged, err
	})
}

func (s *Store) list(c *call, from, to string, limit int) (cells []stores.Cell, damaged []error, err error) {
	keys, err := s.keys(from, to)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if len(cells) == limit {
			break
		}
		if err := c.Err(); err != nil {
			return nil, nil, err
		}
		cell, err := s.load(c, key)
		switch {
		case errors.Is(err, stores.ErrDamaged):
			damaged = append(damaged, err)
		case err != nil:
			return nil, nil, err
		case cell.Version != 0:
			cells = append(cells, cell)
		}
	}
	if err := s.settle(cells...); err != nil {
		return nil, nil, err
	}
	return cells, damaged, nil
}

// Read returns the cell of a key, or one with Version 0.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	return engine.Read(ctx, s.failed, key, func(ctx context.Context, key string) (stores.Cell, error) {
		return wait(ctx, s.path, func(c *call) (stores.Cell, error) {
			cell, err := s.load(c, key)
			if err == nil {
				err = s.settle(cell)
			}
			return cell, err
		})
	})
}

// Swap replaces the value of a cell, if it has that version, and returns when the new one
// is on the disk. While another process writes the same cell, it waits, until ctx ends: the
// error then names that process. It does not wait for a lock of TryLock. After an error of the disk, it is unknown whether the value was
// written, but the cell is the whole old one or the whole new one.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	return engine.Swap(ctx, s.failed, key, version, value, func(ctx context.Context, version uint64, next stores.Cell) error {
		_, err := wait(ctx, s.path, func(c *call) (struct{}, error) { return struct{}{}, s.swap(c, version, next) })
		return err
	})
}

func (s *Store) swap(c *call, version uint64, next stores.Cell) error {
	unlock, err := s.waitLock(c, next.Key)
	if err != nil {
		return err
	}
	defer unlock()
	is, err := s.loadLocked(next.Key)
	if err != nil {
		return err
	}
	if is.Version != version {
		return fmt.Errorf("its version is %d, not %d: %w", is.Version, version, stores.ErrConflict)
	}
	if err := s.replace(c, next); err != nil {
		return err
	}
	s.know(next)
	return nil
}

// replace writes the file of a cell. The caller has locked its swapFile.
func (s *Store) replace(ctx context.Context, c stores.Cell) error {
	temp, path := s.file(c.Key, tempFile), s.file(c.Key, cellFile)
	err := s.write(temp, encode(c))
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = failedFile("rename "+filepath.Base(temp), s.disk("rename", path, func() error { return rename(temp, path) }))
	}
	if err != nil {
		_ = s.remove(temp) // else Open removes it, or the next Swap overwrites it
		return s.ofCell(c.Key, temp, err)
	}
	return failedFile("sync directory", s.syncDir(s.path))
}

func (s *Store) write(path string, data []byte) error {
	var f *os.File
	step := func(what string, do func() error) error {
		return failedFile(what+" "+filepath.Base(path), s.disk(what, path, do))
	}
	err := step("create", func() (err error) {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, ownerOnly)
		return err
	})
	if err != nil {
		return err
	}
	err = step("write", func() error { _, err := f.Write(data); return err })
	if err == nil {
		err = step("sync", f.Sync)
	}
	if closed := f.Close(); err == nil {
		err = failedFile("close "+filepath.Base(path), closed)
	}
	return err
}

func (s *Store) remove(path string) error {
	return s.disk("remove", path, func() error { return os.Remove(path) })
}

func (s *Store) syncDir(path string) error {
	return s.disk("sync", path, func() error { return syncDir(path) })
}

// load reads a cell, which may not be on the disk yet.
func (s *Store) load(c *call, key string) (stores.Cell, error) {
	if readLocks {
		unlock, err := s.waitLock(c, key)
		if err != nil {
			return stores.Cell{}, err
		}
		defer unlock()
	}
	return s.loadLocked(key)
}

func (s *Store) loadLocked(key string) (stores.Cell, error) {
	path := s.file(key, cellFile)
	data, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Either there is no cell, or the directory was removed. The latter is an error: a new
		// start would issue IDs twice.
		if _, err := os.Stat(s.path); err != nil {
			return stores.Cell{}, unfitFor("cannot be read; was it removed while it was in use?", causeOf(err))
		}
		return stores.Cell{Key: key}, nil
	}
	if err != nil {
		return stores.Cell{}, s.ofCell(key, path, failedFile("read "+filepath.Base(path), err))
	}
	c, problem := parse(data, key)
	if problem != "" {
		return stores.Cell{}, &stores.DamagedError{Key: key, Problem: fmt.Sprintf("%s: %s; it is left as it is, and cannot be used. Move it away only if no ID can be issued twice then", filepath.Base(path), problem)}
	}
	return c, nil
}

var errNotRegular = errors.New("it is no regular file")

// readRegular reads a regular file: all of it, or, of a longer one, a byte more than a cell
// can have.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path) // opening a named pipe would wait
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, maxFile+1)
	n, err := io.ReadFull(f, data)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return data[:n], nil
	}
	return nil, err
}

// settle makes sure that loaded cells survive a power cut, because the caller relies on
// them. A writer that was killed, or could not sync the directory, may have left a cell
// that is not on the disk yet.
func (s *Store) settle(cells ...stores.Cell) error {
	s.mu.Lock()
	unsure := slices.ContainsFunc(cells, func(c stores.Cell) bool { return s.synced[c.Key] != c.Version })
	s.mu.Unlock()
	if !unsure {
		return nil
	}
	if err := s.syncDir(s.path); err != nil {
		return failedFile("sync directory", err)
	}
	s.know(cells...)
	return nil
}

// know notes that cells are on the disk. If two calls come in the wrong order, the next
// reader syncs once more.
func (s *Store) know(cells ...stores.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cells {
		s.synced[c.Key] = c.Version
	}
}

// keys returns the keys in [from, to) that may have a cell, in their order. On some file systems, the name of a
// file that is replaced meanwhile is not found, but that of the file that its writers lock stays.
func (s *Store) keys(from, to string) ([]string, error) {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return nil, unfitFor("cannot be read", causeOf(err))
	}
	var keys []string
	for _, entry := range entries {
		for _, kind := range []string{cellFile, swapFile} {
			if key, ok := keyOf(entry.Name(), kind); ok && from <= key && key < to {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys) // in names, + stands for the slash
	return slices.Compact(keys), nil
}

func (s *Store) file(key, kind string) string {
	return filepath.Join(s.path, strings.ReplaceAll(key, "/", "+")+kind)
}

// keyOf returns the key in the name of a file, if the file is of that kind.
func keyOf(name, kind string) (key string, ok bool) {
	key, ok = strings.CutSuffix(name, kind)
	key = strings.ReplaceAll(key, "+", "/")
	return key, ok && stores.CheckKey(key) == nil
}
