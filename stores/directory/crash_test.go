package directory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

var errStep = errors.New("the test makes it fail")

// failing is the real disk until a step, which fails in one of three ways: it does
// nothing, it is done and reported as failed, or half of it is done. If it is a crash,
// all later steps do nothing, too.
type failing struct {
	step, way int
	crash     bool
	err       error

	mu   sync.Mutex
	done int
	what string // the step that failed
}

const never = 1 << 30

const (
	doesNothing = iota
	doneAndFails
	halfDone
	ways
)

func (f *failing) do(what string, step func(part int) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done++
	switch {
	case f.done < f.step, f.done > f.step && !f.crash:
		return step(2)
	case f.done > f.step:
		return f.err
	}
	f.what = what
	if f.way != doesNothing {
		_ = step(map[int]int{doneAndFails: 2, halfDone: 1}[f.way])
	}
	return f.err
}

func (f *failing) disk() disk {
	// A step that is all or nothing is not done by halves.
	whole := func(step func() error) func(int) error {
		return func(part int) error {
			if part < 2 {
				return nil
			}
			return step()
		}
	}
	return disk{
		lock: tryLock,
		create: func(path string) (file *os.File, err error) {
			err = f.do("create", whole(func() (err error) { file, err = realDisk.create(path); return err }))
			if err != nil && file != nil {
				_ = file.Close()
			}
			return file, err
		},
		write: func(file *os.File, data []byte) error {
			return f.do("write", func(part int) error { return realDisk.write(file, data[:len(data)*part/2]) })
		},
		sync: func(file *os.File) error {
			return f.do("sync", whole(func() error { return realDisk.sync(file) }))
		},
		rename: func(from, to string) error {
			return f.do("rename", whole(func() error { return realDisk.rename(from, to) }))
		},
		remove: func(path string) error {
			return f.do("remove", whole(func() error { return realDisk.remove(path) }))
		},
		syncDir: func(path string) error {
			return f.do("syncDir", whole(func() error { return realDisk.syncDir(path) }))
		},
	}
}

// Each step of the first and the second Swap of a cell fails, or is the process's
// last. The cell is then the old one or the new one, and goes on from there.
func TestEveryStepFails(t *testing.T) {
	failed := make(map[string]bool)
	for _, crash := range []bool{false, true} {
		for way := range ways {
			for written := range 2 {
				for step := 1; ; step++ {
					f := &failing{step: never, way: way, crash: crash, err: errStep}
					dir := filepath.Join(t.TempDir(), "state")
					s, err := open(dir, f.disk())
					require.NoError(t, err)
					old := stores.Cell{Key: "node/0000007"}
					for range written {
						old, err = swap(t.Context(), s, old, []byte("old"))
						require.NoError(t, err)
					}
					f.step = f.done + step
					made, err := swap(t.Context(), s, old, []byte("new"))
					if f.what == "" {
						require.NoError(t, err)
						break
					}
					failed[f.what] = true
					about := fmt.Sprintf("crash: %v, way %d, %d written, step %d: %s", crash, way, written, step, f.what)
					require.ErrorIs(t, err, errStep, about)
					require.NotErrorIs(t, err, stores.ErrConflict, about)
					assert.Zero(t, made, about)
					if !crash {
						goesOn(t, s, old, about)
						continue
					}
					_, err = s.Read(t.Context(), "node/0000007")
					if err == nil && f.what == "syncDir" {
						t.Errorf("%s: what is not on the disk was read", about)
					}
					again, err := Open(t.Context(), dir)
					require.NoError(t, err, about)
					temps, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
					require.NoError(t, err)
					assert.Empty(t, temps, about)
					goesOn(t, again, old, about)
				}
			}
		}
	}
	assert.Len(t, failed, 5, "%v", failed) // all but remove, which a Swap only does after another has failed
}

// goesOn checks that the cell is the old one or the new one, and can be written.
func goesOn(t *testing.T, s *Store, old stores.Cell, about string) {
	t.Helper()
	is, err := s.Read(t.Context(), old.Key)
	require.NoError(t, err, about)
	if is.Version != old.Version || string(is.Value) != string(old.Value) {
		assert.Greater(t, is.Version, old.Version, about)
		assert.Equal(t, "new", string(is.Value), about)
	}
	cells, err := s.List(t.Context(), "", "\x7f", 1<<30)
	require.NoError(t, err, about)
	if is.Version > 0 {
		assert.Equal(t, []stores.Cell{is}, cells, about)
	}
	next, err := swap(t.Context(), s, is, []byte("next"))
	require.NoError(t, err, about)
	assert.Greater(t, next.Version, is.Version, about)
}

func TestErrorsOfTheDisk(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.ENOSPC: "free some space",
		syscall.EROFS:  "mount the file system for writing",
		syscall.EACCES: "it must be readable and writable",
		syscall.EIO:    "input/output error",
	} {
		dir := t.TempDir()
		f := &failing{step: never, err: &os.LinkError{Op: "rename", Old: dir, New: dir, Err: cause}}
		require.NoError(t, os.Chmod(dir, ownDir))
		s, err := open(dir, f.disk())
		require.NoError(t, err)
		cell, err := swap(t.Context(), s, stores.Cell{Key: "node/0000007"}, []byte("old"))
		require.NoError(t, err)
		f.step, f.way = f.done+2, halfDone // the write
		_, err = swap(t.Context(), s, cell, []byte("new"))
		require.ErrorIs(t, err, cause)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, cause == syscall.EROFS || cause == syscall.EACCES, stores.KindOf(err) == stores.Refused, "%v", err)
		assert.ErrorContains(t, err, "directory "+dir+": swap node/0000007: write node+0000007.cell.tmp: "+cause.Error())
		assert.Equal(t, 1, strings.Count(err.Error(), dir), "%v", err)
		_, err = os.Stat(s.file("node/0000007", tempFile))
		assert.ErrorIs(t, err, os.ErrNotExist, "it would take up space")
		is, err := s.Read(t.Context(), "node/0000007")
		require.NoError(t, err)
		assert.Equal(t, cell, is)
	}
}

// volatile is a disk that forgets, in a power cut, what was not synced: what is in
// files, and the names of files since the last sync of their directory.
type volatile struct {
	disk
	random *rand.Rand
	synced map[string]bool // by the path of a file, as it is now
	undo   []func()        // of renames since then, the last one last
	failed bool            // the next sync of the directory
}

func newVolatile(seed uint64) *volatile {
	v := &volatile{disk: realDisk, random: rand.New(rand.NewPCG(seed, 1)), synced: make(map[string]bool)}
	v.create = func(path string) (*os.File, error) {
		v.synced[path] = false
		return realDisk.create(path)
	}
	v.write = func(f *os.File, data []byte) error {
		v.synced[f.Name()] = false
		return realDisk.write(f, data)
	}
	v.sync = func(f *os.File) error {
		v.synced[f.Name()] = true
		return nil
	}
	v.rename = func(from, to string) error {
		was, err := os.ReadFile(to)
		existed, wasSynced := err == nil, v.synced[to]
		v.undo = append(v.undo, func() {
			v.synced[to] = wasSynced
			if existed {
				_ = os.WriteFile(to, was, ownerOnly)
			} else {
				_ = os.Remove(to)
			}
		})
		v.synced[to] = v.synced[from]
		return realDisk.rename(from, to)
	}
	v.syncDir = func(string) error {
		if v.failed {
			v.failed = false
			return syscall.EIO
		}
		v.undo = nil
		return nil
	}
	return v
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

// Whatever Swap has acknowledged, and Read or List have shown, is there after a power
// cut.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(400) {
		v := newVolatile(seed)
		dir := filepath.Join(t.TempDir(), "state")
		cell, relied := stores.Cell{Key: "node/0000007"}, uint64(0)
		for life := range 5 {
			s, err := open(dir, v.disk)
			require.NoError(t, err)
			is, err := s.Read(t.Context(), "node/0000007")
			require.NoError(t, err, "seed %d", seed)
			require.GreaterOrEqual(t, is.Version, relied, "seed %d, life %d: what was relied on is lost", seed, life)
			if is.Version > 0 {
				before, err := strconv.ParseUint(string(is.Value), 10, 64)
				require.NoError(t, err, "seed %d", seed)
				require.True(t, before < is.Version && is.Version <= before+1<<32, "seed %d: version %d has the value of one after %d", seed, is.Version, before)
			}
			cell, relied = is, is.Version
			for range v.random.IntN(4) {
				v.failed = v.random.IntN(3) == 0
				next, err := swap(t.Context(), s, cell, strconv.AppendUint(nil, cell.Version, 10))
				v.failed = false
				if err == nil {
					cell, relied = next, next.Version
					continue
				}
				switch v.random.IntN(3) {
				case 0:
					is, err := s.Read(t.Context(), "node/0000007")
					require.NoError(t, err)
					cell, relied = is, is.Version
				case 1:
					// Another process looks.
					other, err := open(dir, v.disk)
					require.NoError(t, err)
					cells, err := other.List(t.Context(), "", "\x7f", 1<<30)
					require.NoError(t, err)
					require.Len(t, cells, 1)
					cell, relied = cells[0], cells[0].Version
				}
			}
			v.cut(t)
		}
	}
}

// Cells that cannot be read are left alone, and hide no others.
func TestTornStates(t *testing.T) {
	for name, state := range tornStates() {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state"))
			require.NoError(t, err)
			good, err := swap(t.Context(), s, stores.Cell{Key: "node/0000006"}, []byte("good"))
			require.NoError(t, err)
			last, err := swap(t.Context(), s, stores.Cell{Key: "node/0000008"}, []byte("good"))
			require.NoError(t, err)
			path := filepath.Join(s.Path(), "node+0000007.cell")
			require.NoError(t, os.WriteFile(path, []byte(state[0]), 0o600))

			check := func(err error) {
				t.Helper()
				torn := new(stores.DamagedError)
				require.ErrorAs(t, err, &torn)
				assert.Equal(t, "node/0000007", torn.Key)
				assert.True(t, strings.HasPrefix(torn.Problem, "node+0000007.cell: "+state[1]), torn.Problem)
				assert.Equal(t, 1, strings.Count(err.Error(), s.Path()), "%v", err)
				assert.ErrorIs(t, err, stores.ErrDamaged)
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			for range 2 { // before and after a restart
				_, err = s.Read(t.Context(), "node/0000007")
				check(err)
				cells, err := s.List(t.Context(), "", "\x7f", 1<<30)
				check(err)
				assert.Equal(t, []stores.Cell{good, last}, cells)
				for _, version := range []uint64{0, 1, 11, 12, 13} {
					_, err = swap(t.Context(), s, stores.Cell{Key: "node/0000007", Version: version}, []byte("new"))
					check(err)
				}
				unlock, err := s.TryLock(t.Context(), "node/0000007")
				require.NoError(t, err)
				unlock()
				s, err = Open(t.Context(), s.Path())
				require.NoError(t, err)
			}
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, state[0], string(left), "it was overwritten")
		})
	}
}

// swap is Swap from a cell to the next.
func swap(ctx context.Context, s stores.Store, old stores.Cell, value []byte) (stores.Cell, error) {
	version, err := s.Swap(ctx, old.Key, old.Version, value)
	if err != nil {
		return stores.Cell{}, err
	}
	return stores.Cell{Key: old.Key, Version: version, Value: value}, nil
}
