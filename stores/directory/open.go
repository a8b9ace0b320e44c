package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const ownDir = 0o700

// Open returns a Store on a directory, which it makes, with mode 0700, if there is
// none.
//
// The error of a directory that is not fit for it is a [*DirectoryError]: one that
// belongs to another user or that others may write to, is none, or cannot be made. A
// [*FileError] says that the disk has failed, and a [*NotSupportedError] that the
// system has no file locks.
//
// The directory must be on a local file system; see the package's doc.
func Open(path string) (*Store, error) { return open(path, realDisk) }

func open(path string, d disk) (*Store, error) {
	if !supported {
		return nil, &NotSupportedError{System: runtime.GOOS}
	}
	if path == "" {
		return nil, &DirectoryError{Path: path, Problem: "has no name"}
	}
	// The process may change its working directory.
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, &DirectoryError{Path: path, Problem: "its absolute path is not known", Err: err}
	}
	s := &Store{path: absolute, disk: d, synced: make(map[int64]uint64)}
	made, err := s.make()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return nil, &DirectoryError{Path: absolute, Problem: "cannot be looked at", Err: err}
	}
	if problem := unfit(info); problem != "" {
		return nil, &DirectoryError{Path: absolute, Mode: info.Mode().Perm(), Problem: problem}
	}
	if err := s.prepare(made); err != nil {
		return nil, err
	}
	return s, nil
}

// make makes the directory and those that it is in, and syncs the names of those
// that it has made, but for the last one's, which prepare syncs.
func (s *Store) make() (made bool, err error) {
	var missing []string
	for dir := s.path; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return false, &DirectoryError{Path: s.path, Problem: "cannot be looked at", Err: err}
		}
		missing = append(missing, dir)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], ownDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, &DirectoryError{Path: s.path, Problem: "cannot be made; make it, or name another", Err: err}
		}
		if i == 0 {
			break
		}
		if err := s.disk.syncDir(filepath.Dir(missing[i])); err != nil {
			return false, wrap("sync directory", filepath.Dir(missing[i]), err)
		}
	}
	return len(missing) > 0, nil
}

// unfit says what is wrong with a directory.
func unfit(info fs.FileInfo) string {
	mode := info.Mode()
	owner, mine := ownedByUs(info)
	switch {
	case !mode.IsDir():
		return "is not a directory"
	case !mine:
		return fmt.Sprintf("belongs to %s, and this process runs as user %d: run it as that user, or name another directory", owner, os.Geteuid())
	case checkMode && mode.Perm()&0o022 != 0:
		return fmt.Sprintf("its mode is %#o, so other users can write to it: chmod 700 it, if nobody has", mode.Perm())
	}
	return ""
}

// prepare removes what a process that was killed in the middle of a Swap has left,
// and makes sure of the directory's own name.
func (s *Store) prepare(made bool) error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return &DirectoryError{Path: s.path, Mode: ownDir, Problem: "cannot be read", Err: err}
	}
	used := false
	for _, entry := range entries {
		_, isCell := nodeOf(entry.Name(), cellFile)
		used = used || isCell
		node, isTemp := nodeOf(entry.Name(), tempFile)
		if !isTemp {
			continue
		}
		// Whoever has locked it is writing it. If it cannot be removed, it is in nobody's
		// way.
		if unlock, err := tryLock(s.file(node, swapFile)); err == nil {
			_ = s.disk.remove(s.file(node, tempFile))
			unlock()
		}
	}
	if used {
		return nil // so the one who has written the first cell has done this
	}
	parent := filepath.Dir(s.path)
	err = s.disk.syncDir(parent)
	if errors.Is(err, fs.ErrPermission) && !made {
		return nil // whoever made it may do more there than we
	}
	return wrap("sync directory", parent, err)
}

// DefaultPath returns the directory for the cells of the user that the process runs
// as: tickflake in $XDG_STATE_HOME, or in ~/.local/state if that is not set. On macOS,
// it is ~/Library/Application Support/tickflake, and on Windows,
// %LocalAppData%\tickflake. It makes no directory.
//
// The error, a [*DirectoryError], says that the user has no home directory.
func DefaultPath() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if filepath.IsAbs(base) { // the specification says to ignore any other
		return filepath.Join(base, "tickflake"), nil
	}
	var err error
	switch runtime.GOOS {
	case "windows":
		base, err = os.UserCacheDir() // which is %LocalAppData%
	case "darwin", "ios":
		base, err = os.UserConfigDir() // which is ~/Library/Application Support
	default:
		if base, err = os.UserHomeDir(); err == nil {
			base = filepath.Join(base, ".local", "state")
		}
	}
	if err != nil || !filepath.IsAbs(base) {
		return "", &DirectoryError{Path: base, Problem: "there is no home directory to keep state in; name a directory", Err: err}
	}
	return filepath.Join(base, "tickflake"), nil
}
