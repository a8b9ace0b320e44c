package directory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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

// files is a store: the files of a directory.
type files struct {
	engine.Skeleton[string]
	path string
	disk disk
	wide fs.FileMode // that the directory had until its group's right was taken away, or 0

	// synced has, by key, a text that was on the disk. If two calls come in the wrong order, the next
	// reader syncs once more.
	synced sync.Map
}

// disk runs one step of a write or of a lock on the file or directory at a path: create, write, sync, rename,
// remove, lock or unlock. Tests make a step fail, hang, or be lost.
type disk func(step, path string, do func() error) error

func realDisk(_, _ string, do func() error) error { return do() }

// reading is how many cells of a List are read at once.
const reading = 4

// texts are the cells, for the skeleton. The revision of a text is the text, whose version never returns.
type texts struct{ *files }

func (t texts) Get(ctx context.Context, key string, latest bool) (engine.Text[string], error) {
	return place(ctx, t.path, func() (engine.Text[string], error) {
		text, err := t.load(key)
		if err == nil && latest {
			err = t.settle(key, text)
		}
		return engine.Text[string]{Bytes: []byte(text), Found: text != "", Revision: text, Latest: true}, err
	})
}

// Scan gives the keys alone. On some file systems, the name of a file that is replaced meanwhile is not found, but that
// of the file that its writers lock stays.
func (t texts) Scan(ctx context.Context, _, _ string, _ int, found func(string, []byte)) (more bool, err error) {
	entries, err := place(ctx, t.path, func() ([]os.DirEntry, error) {
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

func (t texts) Put(ctx context.Context, key, was string, text []byte) error {
	_, err := place(ctx, t.path, func() (struct{}, error) { return struct{}{}, t.swap(ctx, key, was, text) })
	return err
}

func (s *files) swap(ctx context.Context, key, was string, text []byte) error {
	unlock, err := s.lockSwap(key)
	if err != nil {
		return err
	}
	defer unlock()
	is, err := s.loadLocked(key)
	if err != nil {
		return err
	}
	if is != was {
		return stores.ErrConflict
	}
	if err := s.replace(ctx, key, text); err != nil {
		return err
	}
	s.synced.Store(key, string(text))
	return nil
}

// replace writes the file of a cell. The caller has locked its swapFile.
func (s *files) replace(ctx context.Context, key string, text []byte) error {
	temp, path := s.file(key, tempFile), s.file(key, cellFile)
	err := s.write(temp, encode(key, text))
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = failedFile("rename "+filepath.Base(temp), s.disk("rename", path, func() error { return rename(temp, path) }))
	}
	if err != nil {
		_ = s.remove(temp) // else the next Swap overwrites it
		return s.ofCell(key, temp, err)
	}
	return failedFile("sync directory", s.syncDir(s.path))
}

func (s *files) write(path string, data []byte) error {
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

func (s *files) remove(path string) error {
	return s.disk("remove", path, func() error { return os.Remove(path) })
}

func (s *files) syncDir(path string) error {
	return s.disk("sync", path, func() error { return syncDir(path) })
}

// load reads the text of a cell, which may not be on the disk yet, or "" if there is none.
func (s *files) load(key string) (string, error) {
	if readLocks {
		unlock, err := s.lockSwap(key)
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	return s.loadLocked(key)
}

func (s *files) loadLocked(key string) (string, error) {
	path := s.file(key, cellFile)
	data, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Either there is no cell, or the directory was removed. The latter is an error: a new
		// start would issue IDs twice.
		if _, err := os.Stat(s.path); err != nil {
			return "", unfitFor("cannot be read; was it removed while it was in use?", causeOf(err))
		}
		return "", nil
	}
	if err != nil {
		return "", s.ofCell(key, path, failedFile("read "+filepath.Base(path), err))
	}
	text, problem := parse(data, key)
	if problem != "" {
		return "", &stores.DamagedError{Key: key, Problem: filepath.Base(path) + ": " + problem + "; it is left as it is"}
	}
	return string(text), nil
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
func (s *files) settle(key, text string) error {
	if was, _ := s.synced.Load(key); text == "" || was == text {
		return nil
	}
	if err := s.syncDir(s.path); err != nil {
		return failedFile("sync directory", err)
	}
	s.synced.Store(key, text)
	return nil
}

func (s *files) file(key, kind string) string {
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

// place runs a call, as at most maxCalls at a time, and again while another process has locked the file that the call locks:
// a context cannot end the wait for a file lock. It has no place between these tries, as the process that has the lock may
// be stopped. When ctx ends before a try, place leaves nothing behind.
func place[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	of, _ := places.LoadOrStore(path, make(chan struct{}, maxCalls))
	free, pauses := of.(chan struct{}), engine.Backoff{First: 100 * time.Microsecond, Last: 5 * time.Millisecond}
	var busy error
	for begin := time.Now(); ; {
		var got T
		ended := ctx.Err()
		if busy != nil {
			ended = pauses.Wait(ctx)
		}
		if ended == nil {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				ended = ctx.Err()
			}
		}
		if ended != nil && busy != nil {
			ended = fmt.Errorf("%w, waited %s: fuser names the process that has it, which is stopped or whose disk hangs: %w", busy, time.Since(begin).Round(time.Millisecond), ended)
		}
		if ended != nil {
			return got, ended
		}
		got, err := do()
		<-free
		if busy = err; !errors.Is(err, errBusy) {
			return got, err
		}
	}
}

// wait is place, and does not wait for the call when ctx has ended, as the skeleton does not.
func wait[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	return engine.Wait(ctx, func() (T, error) { return place(ctx, path, do) })
}

const (
	magic  = "tickflake-cell "
	format = 2

	// maxFile is more than the longest cell takes.
	maxFile = stores.MaxValue + stores.MaxKey + 256
)

var table = crc64.MakeTable(crc64.ECMA)

// encode returns the contents of a cell's file: one header line, the text, and
// a newline for human readers.
func encode(key string, text []byte) []byte {
	rest := fmt.Sprintf("key=%s\n%s\n", key, text)
	return fmt.Appendf(nil, "%s%d crc64=%016x %s", magic, format, crc64.Checksum([]byte(rest), table), rest)
}

// parse is the inverse of encode. It accepts only the contents that encode makes for
// this key; for any other, problem says why not.
func parse(data []byte, key string) (text []byte, problem string) {
	header, rest, _ := bytes.Cut(data, []byte("\n"))
	text = bytes.TrimSuffix(rest, []byte("\n"))
	var is int
	var sum uint64
	var of string
	fields, _ := fmt.Sscanf(string(header), magic+"%d crc64=%x key=%s", &is, &sum, &of)
	switch {
	case len(text) > 0 && bytes.Equal(encode(key, text), data):
		return text, ""
	case len(data) == 0:
		return nil, "it is empty"
	case !bytes.HasPrefix(data, []byte(magic)):
		return nil, "it is not a cell of tickflake"
	case fields > 0 && is != format:
		return nil, fmt.Sprintf("its format is %d, and this program knows format %d only", is, format)
	case fields > 2 && stores.CheckKey(of) == nil && of != key:
		return nil, "it is the cell " + of
	}
	return nil, "its checksum does not match: it was cut off, changed or damaged"
}
