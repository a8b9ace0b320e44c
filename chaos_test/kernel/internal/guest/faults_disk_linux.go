package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// diskWindow is the grant of a lease while the disk fails: it ends before the disk heals.
const diskWindow = time.Second

// diskFails is how long a disk fails.
const diskFails = 3 * time.Second

// diskHealed is how long the subjects have to go on.
const diskHealed = 4 * time.Second

func diskFaults() []Fault {
	return []Fault{
		{Name: "disk-full", About: "the disk of the state is full for 3 s", Kind: "disk", Window: diskWindow,
			Causes: []string{unix.ENOSPC.Error()}, Run: diskFull},
		{Name: "disk-read-only", About: "the file system of the state is read-only for 3 s, as after an error", Kind: "disk", Window: diskWindow,
			Causes: []string{unix.EROFS.Error()}, Run: diskReadOnly},
		{Name: "disk-error", About: "every write and flush of the disk fails until the end", Kind: "disk",
			Window: diskWindow, Own: true, Modules: []string{"dm-mod", "dm-flakey"}, Before: mapState,
			Causes: []string{unix.EIO.Error(), unix.EROFS.Error()}, Run: diskError},
	}
}

// overLimit is how long a generator of ours may then take to issue again, on a busy host.
const overLimit = 30 * time.Second

// goOn gives the subjects the time to use up what they had in stock, and then waits until
// each generator of ours has issued again, or overLimit has passed.
func (s *Stage) goOn() error {
	if err := s.Issue(diskHealed); err != nil {
		return err
	}
	for _, r := range s.runners {
		r.mu.Lock()
		r.check.Over()
		r.mu.Unlock()
	}
	deadline := time.Now().Add(overLimit)
	for _, r := range s.runners {
		for !r.other && r.stuck() && time.Now().Before(deadline) {
			if err := s.sleep(5 * time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// stuck says that no ID was issued after the fault was over.
func (r *runner) stuck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check.Verdict(0).Stuck
}

// look notes whether a text names a cause of the fault. The caller has locked mu.
func (r *runner) look(text string) {
	r.named = r.named || slices.ContainsFunc(r.stage.causes, func(c string) bool { return strings.Contains(text, c) })
}

// diskFull takes each free block of the file system, also those that become free.
func diskFull(s *Stage) error {
	if err := s.Issue(time.Second); err != nil {
		return err
	}
	path := filepath.Join(stateDir, "full")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(path) }()
	s.Mark()
	var size int64
	for begin := time.Now(); time.Since(begin) < diskFails; {
		for part := int64(64 << 20); part >= 4096; {
			switch err := unix.Fallocate(int(f.Fd()), 0, size, part); {
			case err == nil:
				size += part
			case errors.Is(err, unix.ENOSPC):
				part /= 2
			case !errors.Is(err, unix.EINTR):
				return fmt.Errorf("fill the disk: %w", err)
			}
		}
		if err := s.Issue(5 * time.Millisecond); err != nil {
			return err
		}
	}
	s.Note = fmt.Sprintf("%d MiB filled", size>>20)
	if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
		return err
	}
	return s.goOn()
}

// diskReadOnly does what a kernel does that no longer trusts a disk: also files that are
// open for writing cannot be written.
func diskReadOnly(s *Stage) error {
	if err := s.Issue(time.Second); err != nil {
		return err
	}
	s.Mark()
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("u"), 0); err != nil {
		return err
	}
	if err := s.Issue(diskFails); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stateDir, "probe"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("the file system of the state is not read-only: %v", err)
	}
	err := unix.Mount("", stateDir, "", unix.MS_REMOUNT, "")
	if errors.Is(err, unix.EINVAL) {
		// A file that was open had been deleted: ext4 wants a new mount then.
		s.Note = "mounted anew, between SIGKILL and start"
		err = s.Restart(func() error {
			if err := unix.Unmount(stateDir, 0); err != nil {
				return err
			}
			return mount(stateDisk, stateDir, "ext4")
		})
	}
	if err != nil {
		return fmt.Errorf("mount %s for writing again: %w", stateDir, err)
	}
	return s.goOn()
}

// mapState mounts the disk of the state by the device mapper, so that it can fail.
func mapState() error {
	if err := unix.Unmount(stateDir, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", stateDir, err)
	}
	if err := createMapping(stateDisk); err != nil {
		return err
	}
	return mount(mapping, stateDir, "ext4")
}

func diskError(s *Stage) error {
	if err := s.Issue(time.Second); err != nil {
		return err
	}
	s.Mark()
	if err := loadMapping(stateDisk, "flakey", "0 0 86400 1 error_writes"); err != nil {
		return err
	}
	if err := s.Issue(diskFails); err != nil {
		return err
	}
	probe := filepath.Join(stateDir, "probe")
	f, err := os.Create(probe)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("a write on a disk that fails: %v, want an error of the disk", err)
	}
	return nil
}
