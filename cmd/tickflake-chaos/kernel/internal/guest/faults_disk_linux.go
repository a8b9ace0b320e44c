package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		{Name: "disk-full", About: "the disk of the state is full for 3 s", Kind: Disks, Window: diskWindow,
			Causes: []string{unix.ENOSPC.Error()}, Run: diskFull},
		{Name: "disk-read-only", About: "the file system of the state is read-only for 3 s, as after an error", Kind: Disks, Window: diskWindow,
			Causes: []string{unix.EROFS.Error()}, Run: diskReadOnly},
		{Name: "disk-error", About: "the disk is pulled out: every request to it fails until the end", Kind: Disks, Window: diskWindow, Own: true,
			Causes: []string{unix.EIO.Error(), unix.EROFS.Error()}, Run: diskError},
	}
}

// diskFull takes each free block of the file system, also those that become free.
func diskFull(s *Stage) {
	s.Issue(time.Second)
	path := filepath.Join(stateDir, "full")
	f, err := os.Create(path)
	s.must(err)
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
				s.must(fmt.Errorf("fill the disk: %w", err))
			}
		}
		s.Issue(5 * time.Millisecond)
	}
	s.Note = fmt.Sprintf("%d MiB filled", size>>20)
	s.must(errors.Join(f.Close(), os.Remove(path)))
	s.goOn(diskHealed)
}

// diskReadOnly does what a kernel does that no longer trusts a disk: also files that are
// open for writing cannot be written.
func diskReadOnly(s *Stage) {
	s.Issue(time.Second)
	s.Mark()
	s.must(os.WriteFile("/proc/sysrq-trigger", []byte("u"), 0))
	s.Issue(diskFails)
	if err := os.WriteFile(filepath.Join(stateDir, "probe"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		s.must(fmt.Errorf("the file system of the state is not read-only: %v", err))
	}
	err := unix.Mount("", stateDir, "", unix.MS_REMOUNT, "")
	if errors.Is(err, unix.EINVAL) {
		// A file that was open had been deleted: ext4 wants a new mount then.
		s.Note = "mounted anew, between SIGKILL and start"
		err = nil
		s.Restart(func() error {
			if err := unix.Unmount(stateDir, 0); err != nil {
				return err
			}
			return mount(stateDisk, stateDir, "ext4")
		})
	}
	if err != nil {
		s.must(fmt.Errorf("mount %s for writing again: %w", stateDir, err))
	}
	s.goOn(diskHealed)
}

// diskError pulls the disk out: the kernel answers each request with an error from then on.
func diskError(s *Stage) {
	s.Issue(time.Second)
	s.Mark()
	device, err := filepath.EvalSymlinks("/sys/block/" + filepath.Base(stateDisk) + "/device")
	s.must(err)
	s.must(os.WriteFile(filepath.Join(filepath.Dir(device), "remove"), []byte("1"), 0))
	s.Issue(diskFails)
	probe := filepath.Join(stateDir, "probe")
	f, err := os.Create(probe)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) {
		s.must(fmt.Errorf("a write on a disk that fails: %v, want an error of the disk", err))
	}
}
