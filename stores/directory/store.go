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
	"strconv"
	"strings"
	"sync"

	"github.com/tickflake/tickflake/lease"
)

const (
	maxNode   = 1<<22 - 1
	digits    = 7 // of maxNode
	cellFile  = ".cell"
	tempFile  = ".cell.tmp" // of whoever has locked swapFile
	swapFile  = ".swap"
	holdFile  = ".hold"
	ownerOnly = 0o600
)

// Store is a [lease.Locker] on the files of a directory. Make one with [Open]; it
// needs no closing. It is safe for use by several goroutines at once, and any number
// of Stores, in any number of processes on the host, can have the same directory.
//
// A Swap syncs a file and the directory. Read and List sync the directory if they
// find a cell that this Store has not known to be on the disk, so whatever they show
// will be there after a power cut. A method whose context ends returns at once with an
// error that wraps the context's, even if the disk hangs.
type Store struct {
	path string
	disk disk

	mu     sync.Mutex
	synced map[int64]uint64 // by node, the version that is known to be on the disk
}

var _ lease.Locker = (*Store)(nil)

// Path returns the absolute path of the directory.
func (s *Store) Path() string { return s.path }

// List returns all cells, by node number.
//
// If some cannot be read, it returns the others, with an error that wraps one
// [*CorruptError] or [*FileError] for each. Such an error comes with cells, if there
// are any; with every other error, there are none.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	return await(ctx, s.list)
}

func (s *Store) list(ctx context.Context) ([]lease.Cell, error) {
	nodes, err := s.nodes()
	if err != nil {
		return nil, err
	}
	cells := make([]lease.Cell, 0, len(nodes))
	var problems []error
	for _, node := range nodes {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		cell, err := s.load(ctx, node)
		switch {
		case err != nil:
			problems = append(problems, err)
		case cell.Version != 0:
			cells = append(cells, cell)
		}
	}
	if err := s.settle(cells...); err != nil {
		return nil, err
	}
	return cells, errors.Join(problems...)
}

// Read returns the cell of a node number from 0 to 2²²-1, or one with Version 0. The
// error of one that is not as it was written is a [*CorruptError]; others are a
// [*FileError], a [*DirectoryError] if the directory is gone, or wrap the context's.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	if err := checkNode(node); err != nil {
		return lease.Cell{}, err
	}
	return await(ctx, func(ctx context.Context) (lease.Cell, error) {
		cell, err := s.load(ctx, node)
		if err == nil {
			err = s.settle(cell)
		}
		if err != nil {
			return lease.Cell{}, err
		}
		return cell, nil
	})
}

// Swap replaces the value of a cell, if its version is old.Version, and returns when
// the new one is on the disk. If another process writes the same cell, it waits; a
// lock by TryLock does not keep it waiting.
//
// Its error wraps [lease.ErrConflict], or is a [*CorruptError] or a [*DirectoryError],
// with nothing changed; is a [*FileError], of a full disk for one; or wraps the
// context's. A node number or value that no cell can have is an error, too.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if err := checkNode(old.Node); err != nil {
		return lease.Cell{}, err
	}
	if len(value) > lease.MaxValue {
		return lease.Cell{}, fmt.Errorf("value of %d bytes: want at most %d", len(value), lease.MaxValue)
	}
	next := lease.Cell{Node: old.Node, Version: old.Version + 1, Value: slices.Clone(value)}
	return await(ctx, func(ctx context.Context) (lease.Cell, error) {
		unlock, err := s.waitLock(ctx, s.file(old.Node, swapFile))
		if err != nil {
			return lease.Cell{}, err
		}
		defer unlock()
		is, err := s.loadLocked(old.Node)
		switch {
		case err != nil:
			return lease.Cell{}, err
		case is.Version != old.Version:
			return lease.Cell{}, fmt.Errorf("swap cell of node %d: its version is %d, not %d: %w", old.Node, is.Version, old.Version, lease.ErrConflict)
		case next.Version == 0:
			return lease.Cell{}, &CorruptError{Path: s.file(old.Node, cellFile), Node: old.Node, Problem: "its version is the last there is"}
		}
		if err := s.replace(ctx, next); err != nil {
			return lease.Cell{}, err
		}
		s.know(next)
		return next, nil
	})
}

// replace writes the file of a cell, whose swapFile is locked.
func (s *Store) replace(ctx context.Context, c lease.Cell) error {
	temp, path := s.file(c.Node, tempFile), s.file(c.Node, cellFile)
	err := s.write(temp, encode(c))
	if err == nil {
		err = ended(ctx)
	}
	if err == nil {
		err = wrap("rename", temp, s.disk.rename(temp, path))
	}
	if err != nil {
		_ = s.disk.remove(temp) // or Open does, or the next Swap overwrites it
		return err
	}
	return s.syncDir()
}

func (s *Store) write(path string, data []byte) (err error) {
	f, err := s.disk.create(path)
	if err != nil {
		return wrap("create", path, err)
	}
	if err := s.disk.write(f, data); err != nil {
		_ = f.Close()
		return wrap("write", path, err)
	}
	if err := s.disk.sync(f); err != nil {
		_ = f.Close()
		return wrap("sync", path, err)
	}
	return wrap("close", path, f.Close())
}

func (s *Store) syncDir() error {
	return wrap("sync directory", s.path, s.disk.syncDir(s.path))
}

// load reads a cell, which may not be on the disk yet.
func (s *Store) load(ctx context.Context, node int64) (lease.Cell, error) {
	if readLocks {
		unlock, err := s.waitLock(ctx, s.file(node, swapFile))
		if err != nil {
			return lease.Cell{}, err
		}
		defer unlock()
	}
	return s.loadLocked(node)
}

func (s *Store) loadLocked(node int64) (lease.Cell, error) {
	path := s.file(node, cellFile)
	data, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		// No cell, or no directory? The latter is no reason to begin anew.
		if _, err := os.Stat(s.path); err != nil {
			return lease.Cell{}, &DirectoryError{Path: s.path, Problem: "cannot be read; was it removed while it was in use?", Err: err}
		}
		return lease.Cell{Node: node}, nil
	}
	if errors.Is(err, errNotRegular) {
		return lease.Cell{}, &CorruptError{Path: path, Node: node, Problem: err.Error()}
	}
	if err != nil {
		return lease.Cell{}, wrap("read", path, err)
	}
	c, problem := parse(data, node)
	if problem != "" {
		return lease.Cell{}, &CorruptError{Path: path, Node: node, Problem: problem}
	}
	return c, nil
}

var errNotRegular = errors.New("it is no regular file")

// readRegular reads a file that a cell can be in, and a byte more of a longer one.
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

// settle makes sure that cells as they were loaded will survive a power cut. A writer
// that was killed, or that could not sync the directory, may have left one that will
// not, and whoever reads it relies on it.
func (s *Store) settle(cells ...lease.Cell) error {
	s.mu.Lock()
	unsure := slices.ContainsFunc(cells, func(c lease.Cell) bool { return s.synced[c.Node] < c.Version })
	s.mu.Unlock()
	if !unsure {
		return nil
	}
	if err := s.syncDir(); err != nil {
		return err
	}
	s.know(cells...)
	return nil
}

// know notes that cells are on the disk.
func (s *Store) know(cells ...lease.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cells {
		s.synced[c.Node] = max(s.synced[c.Node], c.Version)
	}
}

// nodes returns the node numbers that have a cell.
func (s *Store) nodes() ([]int64, error) {
	entries, err := os.ReadDir(s.path) // sorted
	if err != nil {
		return nil, &DirectoryError{Path: s.path, Problem: "cannot be read", Err: err}
	}
	var nodes []int64
	for _, entry := range entries {
		if node, ok := nodeOf(entry.Name(), cellFile); ok {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

func (s *Store) file(node int64, kind string) string {
	return filepath.Join(s.path, base(node)+kind)
}

func base(node int64) string { return fmt.Sprintf("%0*d", digits, node) }

// nodeOf returns the node number in the name of a file, if it is one of that kind.
func nodeOf(name, kind string) (node int64, ok bool) {
	number, ok := strings.CutSuffix(name, kind)
	if !ok || len(number) != digits {
		return 0, false
	}
	node, err := strconv.ParseInt(number, 10, 64)
	return node, err == nil && checkNode(node) == nil && base(node) == number
}

func checkNode(node int64) error {
	if node < 0 || node > maxNode {
		return fmt.Errorf("node number %d: want 0 to %d", node, maxNode)
	}
	return nil
}

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &FileError{Op: op, Path: path, Err: err}
}
