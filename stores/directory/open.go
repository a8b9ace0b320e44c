package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

const ownDir = 0o700

func init() {
	seam.PathOf = pathOf
	stores.Register("", openPath)
	stores.Register("file", func(ctx context.Context, url string) (stores.Store, error) {
		path, err := pathOf(url)
		if err != nil {
			return nil, err
		}
		return openPath(ctx, path)
	})
}

// openPath opens a directory, and makes it, with mode 0700, if there is none. It returns soon after ctx has ended, even if
// the disk hangs.
func openPath(ctx context.Context, path string) (stores.Store, error) {
	s, err := wait(ctx, path, func() (*files, error) { return open(path, realDisk) })
	if err == nil {
		if s.wide != 0 {
			pause.Log(ctx).Warn("the state directory could be written by its group, as on a Kubernetes volume with fsGroup: its mode is 0700 again", "path", s.path, "mode", fmt.Sprintf("%#o", s.wide.Perm()))
		}
		return s, nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("directory %s: open: %w", path, err)
	}
	return nil, err // and not a nil *files
}

// pathOf returns the directory of a file: URL, relative or not. The error is a [*stores.URLError].
func pathOf(url string) (string, error) {
	refuse := func(problem string, err error) (string, error) {
		return "", &stores.URLError{Scheme: "file", Problem: problem, Err: err}
	}
	if len(url) < len("file:") || !strings.EqualFold(url[:len("file:")], "file:") {
		return refuse("it does not begin with file:", nil)
	}
	path, options := url[len("file:"):], ""
	if at := strings.LastIndexByte(path, '?'); at >= 0 {
		path, options = path[:at], path[at+1:]
	}
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if !strings.HasPrefix(rest, "/") {
			return refuse("it names a host; want file:PATH, or file:/// and the rest of an absolute path", nil)
		}
		path = rest
		if volume := strings.TrimPrefix(rest, "/"); filepath.VolumeName(volume) != "" {
			path = volume // of file:///C:/ids
		}
	}
	switch {
	case path == "":
		return refuse("it names no directory; want file:PATH", nil)
	case path[0] == '~':
		return refuse("~ stands for no directory here; want the path in full", nil)
	}
	if options != "" {
		namespace, ok := strings.CutPrefix(options, "namespace=")
		if !ok {
			return refuse("its only option is namespace=NAME", nil)
		}
		if err := stores.CheckNamespace(namespace); err != nil {
			return refuse("option namespace", err)
		}
		path = filepath.Join(path, folder(namespace))
	}
	return path, nil
}

// folder returns the directory's name for a namespace. Many file systems ignore case, so it has no capital letters: = and the
// small letter stand for one.
func folder(namespace string) string {
	var name strings.Builder
	for _, c := range namespace {
		if unicode.IsUpper(c) {
			name.WriteByte('=')
		}
		name.WriteRune(unicode.ToLower(c))
	}
	return name.String()
}

func open(path string, d disk) (*files, error) {
	if !supported {
		return nil, fmt.Errorf("no file locks on %s: keep the cells in another store: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	if path == "" {
		return nil, unfit(path, "has no name", nil)
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return nil, unfit(path, "has a line break or another control character in its name", nil)
	}
	// The process may change its working directory.
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, unfit(path, "has no absolute path", err)
	}
	s := &files{path: absolute, disk: d}
	s.Skeleton = engine.Skeleton[string]{Texts: texts{s}, Reads: reading, At: "directory " + absolute, Ask: s.ask,
		// This host knows which processes live. Directories are scattered, since each pod may have its own.
		Own: stores.Traits{TryLock: s.lockCell, Scattered: true, Private: s.private}}
	made, err := s.make(absolute)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return nil, unfit(s.path, "cannot be looked at", err)
	}
	if problem := problemOf(info); problem != "" {
		return nil, unfit(s.path, problem, nil)
	}
	if err := s.prepare(made, info.Mode()); err != nil {
		return nil, err
	}
	return s, nil
}

// make makes a directory and its missing parents, and syncs the names of the new
// parents. prepare syncs the name of the directory itself.
func (s *files) make(dir string) (made bool, err error) {
	_, err = os.Stat(dir)
	parent := filepath.Dir(dir)
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist) || dir == parent:
		return false, unfit(s.path, "cannot be looked at", err)
	}
	made, err = s.make(parent)
	if made && err == nil {
		err = failedFile("sync directory "+filepath.Dir(parent), s.syncDir(filepath.Dir(parent)))
	}
	if err != nil {
		return false, err
	}
	if err := os.Mkdir(dir, ownDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, unfit(s.path, "cannot be made; make it, or name another", err)
	}
	return true, nil
}

// problemOf returns why a directory cannot be used, or an empty string.
func problemOf(info fs.FileInfo) string {
	mode := info.Mode()
	owner, mine := ownedByUs(info)
	switch {
	case !mode.IsDir():
		return "is not a directory"
	case !mine:
		return fmt.Sprintf("belongs to %s, and this process runs as user %d: run it as that user, or name another directory; on a mounted volume, one of its own below the mount", owner, os.Geteuid())
	case checkMode && mode.Perm()&0o002 != 0:
		return wide(mode)
	}
	return ""
}

func wide(mode fs.FileMode) string {
	return fmt.Sprintf("has the mode %#o, so other users can write to it: if none of them has, run chmod 700 on it; on a Kubernetes volume with fsGroup, name a directory of its own below the mount, and set fsGroupChangePolicy: OnRootMismatch", mode.Perm())
}

// prepare syncs the name of the directory. It takes the group's right to write away, which Kubernetes gives to a volume with
// fsGroup at each start of a pod, unless the directory has other files than the store's: it is then not one that a store has made.
func (s *files) prepare(made bool, mode fs.FileMode) error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return unfit(s.path, "cannot be read", err)
	}
	if checkMode && mode.Perm()&0o020 != 0 {
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !isOurs(e.Name()) }) {
			return unfit(s.path, wide(mode), nil)
		}
		if err := os.Chmod(s.path, ownDir); err != nil {
			return unfit(s.path, wide(mode), err)
		}
		s.wide = mode
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { _, ok := keyOf(e.Name(), cellFile); return ok }) {
		return nil // the process that wrote the first cell has synced it
	}
	parent := filepath.Dir(s.path)
	err = s.syncDir(parent)
	if errors.Is(err, fs.ErrPermission) && !made {
		return nil // the user who made it may have had more rights there
	}
	return failedFile("sync directory "+parent, err)
}

// isOurs reports whether a file of this name is one of a cell.
func isOurs(name string) bool {
	return slices.ContainsFunc([]string{cellFile, tempFile, swapFile, holdFile}, func(kind string) bool {
		_, ok := keyOf(name, kind)
		return ok
	})
}

// DefaultPath returns the directory for the cells of the user that the process runs
// as: tickflake in $XDG_STATE_HOME, or in ~/.local/state if that is not set. On macOS,
// it is ~/Library/Application Support/tickflake, and on Windows,
// %LocalAppData%\tickflake. It makes no directory.
//
// If the user has no home directory, the error wraps [ErrUnfit].
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
		return "", unfit(base, "has no place, because the user has no home directory; name a directory", err)
	}
	return filepath.Join(base, "tickflake"), nil
}

// ErrUnfit is wrapped by the error for a directory that cannot keep cells safely: it
// belongs to another user, others may write to it, it is not a directory, or it cannot be
// made or read. The text says what to do.
var ErrUnfit = stores.Permanent.New("not fit for a store")

// unfit returns the error of Open for a directory.
func unfit(path, problem string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == path { // and not a parent's
		err = e.Err
	}
	return fmt.Errorf("state directory %q is %w", path, unfitFor(problem, err))
}

// unfitFor is unfit without the path, which the error of an operation has already.
func unfitFor(problem string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: it %s", ErrUnfit, problem)
	}
	return fmt.Errorf("%w: it %s: %w", ErrUnfit, problem, err)
}

// causeOf returns an error without the paths that it would repeat.
func causeOf(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// failedFile returns the error of an operation on a file, with advice, or nil if err is
// nil. The error of an operation of a Store has the path of the directory already.
func failedFile(op string, err error) error {
	if err == nil {
		return nil
	}
	err = causeOf(err)
	var advice error
	switch {
	case errors.Is(err, errDiskFull), errors.Is(err, syscall.EDQUOT):
		advice = stores.Permanent.New("free some space")
	case errors.Is(err, syscall.EROFS):
		advice = stores.Permanent.New("mount the file system for writing, or name another directory")
	case errors.Is(err, fs.ErrPermission):
		advice = stores.Permanent.New("it must be readable and writable for the user that this process runs as")
	case errors.Is(err, fs.ErrNotExist):
		advice = errors.New("was the directory removed while it was in use?")
	default:
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w; %w", op, err, advice)
}

// ofCell returns the error of an operation on a file of a cell, and makes it a
// [*stores.DamagedError] if the file itself is the reason, so that other cells can still
// be used.
func (s *files) ofCell(key, path string, err error) error {
	if err == nil {
		return nil
	}
	info, gone := os.Lstat(path)
	if gone == nil && (!info.Mode().IsRegular() || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO)) {
		return &stores.DamagedError{Key: key, Problem: "its file cannot be used; give it back to this user, or remove it if it is not the " + cellFile + " file", Err: err}
	}
	return err
}
