package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// Store is a [stores.Store] on the files of a directory. Make one with [Open]. It is safe
// for use by several goroutines at once, and any number of Stores, in any number of
// processes on the host, can have the same directory.
//
// A Swap syncs a file and the directory, and a Read the directory if it
// finds a cell that may not be on the disk yet, so what they return
// survives a power cut. While another process writes the same cell, a Swap waits, until its context ends: the
// error then names that process. After an error of the disk, it is unknown whether the value was
// written, but the cell is the whole old one or the whole new one. A List reads the names of all files, and the cells
// that it returns. A method whose context ends returns soon with an
// error that wraps the context's, even if the disk hangs. The call then still waits for the
// disk, in a goroutine with a thread. A process has at most 16 such calls for each
// directory: further calls wait for one of them to end.
//
// If the file of a cell cannot be read as it was written, or its helper files cannot be
// used, the error is a [*stores.DamagedError]. Other cells are not affected.
type Store struct {
	engine.Skeleton[uint64]
	path string
	disk disk

	mu     sync.Mutex
	synced map[string]uint64 // by key, the version that is known to be on the disk
}

var _ stores.Store = (*Store)(nil)

// Traits has locks: this host knows which processes live. Directories are scattered, since each pod may have its own.
func (s *Store) Traits() stores.Traits {
	traits := s.Skeleton.Traits()
	traits.TryLock, traits.Scattered, traits.Private = s.lockCell, true, s.private
	return traits
}

// disk runs one step of a write or of a lock on the file or directory at a path: create, write, sync, rename,
// remove, lock or unlock. Tests make a step fail, hang, or be lost.
type disk func(step, path string, do func() error) error

func realDisk(_, _ string, do func() error) error { return do() }

// Path returns the absolute path of the directory.
func (s *Store) Path() string { return s.path }

// reading is how many cells of a List are read at once.
const reading = 4

// texts are the cells, for the skeleton. The revision of a text is its version.
type texts struct{ *Store }

func (t texts) Get(ctx context.Context, key string, latest bool) (engine.Text[uint64], error) {
	return place(ctx, t.path, func(c *call) (none engine.Text[uint64], err error) {
		cell, err := t.load(c, key)
		if err == nil && latest {
			err = t.settle(cell)
		}
		if err != nil || cell.Version == 0 {
			return none, err
		}
		return engine.Text[uint64]{Bytes: engine.FormatCell(cell.Version, cell.Value), Found: true}, nil
	})
}

// Scan gives the keys alone. On some file systems, the name of a file that is replaced meanwhile is not found, but that
// of the file that its writers lock stays.
func (t texts) Scan(ctx context.Context, _, _ string, _ int, found func(string, []byte)) (more bool, err error) {
	entries, err := place(ctx, t.path, func(*call) ([]os.DirEntry, error) {
		entries, err := os.ReadDir(t.path)
		if err != nil {
			err = unfitFor("cannot be read", causeOf(err))
		}
		return entries, err
	})
	for _, entry := range entries {
		for _, kind := range []string{cellFile, swapFile} {
			if key, ok := keyOf(entry.Name(), kind); ok {
				found(key, nil)
			}
		}
	}
	return false, err
}

func (t texts) Put(ctx context.Context, key string, version uint64, text []byte) error {
	next, err := engine.ParseCell(key, text)
	if err == nil {
		_, err = place(ctx, t.path, func(c *call) (struct{}, error) { return struct{}{}, t.swap(c, version, next) })
	}
	return err
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
		return stores.Cell{}, &stores.DamagedError{Key: key, Problem: fmt.Sprintf("%s: %s; it is left as it is, and cannot be used. Move it away only if no ID or number can be issued twice then", filepath.Base(path), problem)}
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

// settle makes sure that a loaded cell survives a power cut, because the caller relies on
// it. A writer that was killed, or could not sync the directory, may have left a cell
// that is not on the disk yet.
func (s *Store) settle(c stores.Cell) error {
	s.mu.Lock()
	sure := s.synced[c.Key] == c.Version
	s.mu.Unlock()
	if sure {
		return nil
	}
	if err := s.syncDir(s.path); err != nil {
		return failedFile("sync directory", err)
	}
	s.know(c)
	return nil
}

// know notes that a cell is on the disk. If two calls come in the wrong order, the next
// reader syncs once more.
func (s *Store) know(c stores.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced[c.Key] = c.Version
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

// maxCalls is how many calls of a process may run in one directory. A call that a hanging
// disk delays continues after its caller has given up, with a thread and perhaps an open
// file, and Go ends a process that has 10,000 threads.
const maxCalls = 16

// places has, by the path of each directory that this process has used, a channel with capacity maxCalls: the places of
// the calls that run.
var places sync.Map

// call is a call with its context.
type call struct {
	context.Context
	places chan struct{} // of its directory
	inside bool          // it has a place
}

func (c *call) enter() error {
	select {
	case c.places <- struct{}{}:
		c.inside = true
		return nil
	case <-c.Done():
		return c.Err()
	}
}

func (c *call) leave() {
	if c.inside {
		c.inside = false
		<-c.places
	}
}

// place runs a call, as at most maxCalls at a time. Further calls wait for a place, and leave nothing
// behind when their context ends.
func place[T any](ctx context.Context, path string, do func(*call) (T, error)) (none T, err error) {
	of, _ := places.LoadOrStore(path, make(chan struct{}, maxCalls))
	c := &call{Context: ctx, places: of.(chan struct{})}
	defer c.leave()
	if err := c.enter(); err != nil {
		return none, err
	}
	return do(c)
}

// wait is place, and does not wait for the call when ctx has ended, as the skeleton does not.
func wait[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	return engine.Wait(ctx, func() (T, error) { return place(ctx, path, func(*call) (T, error) { return do() }) })
}
