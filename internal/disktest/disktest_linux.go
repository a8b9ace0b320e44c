package disktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Disk is a directory on a file system that hangs from Hang to Back.
type Disk struct {
	Dir  string
	Hang func()
	Back func() // may be called more than once
}

// Kind is a way to hang.
type Kind string

const (
	// Frozen is an ext4 on a loop device that fsfreeze has frozen. Writes wait, deep in the
	// kernel: a killed process ends only when the disk is back. Reads still succeed.
	Frozen Kind = "frozen ext4"
	// Silent is a FUSE file system that does not answer, mounted over the directory. All
	// operations on paths wait. They fail when the disk is back.
	Silent Kind = "silent FUSE"
)

// Kinds are all kinds.
var Kinds = []Kind{Frozen, Silent}

// longest bounds a freeze. The tests' process cannot end while a thread of it
// waits for a frozen disk.
const longest = 2 * time.Minute

// New returns a disk that answers. It is removed when the test ends; the test then fails
// if a file of the frozen kind is still open.
func New(t testing.TB, kind Kind) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		without(t, "%s: only root can mount a file system", kind)
	}
	if kind == Frozen {
		return frozen(t)
	}
	return silent(t)
}

func frozen(t testing.TB) *Disk {
	top := t.TempDir()
	image, dir := filepath.Join(top, "image"), filepath.Join(top, "disk")
	run(t, "truncate", "--size=16M", image)
	run(t, "mkfs.ext4", "-q", image)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() {
		var err error
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if err = syscall.Unmount(dir, 0); err == nil {
				return
			}
		}
		t.Errorf("unmount %s: %v: a file of it is still open", dir, err)
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	})
	back := func() {}
	t.Cleanup(func() { back() })
	return &Disk{Dir: dir, Back: func() { back() }, Hang: func() {
		watch := exec.Command("sh", "-c", `sleep "$0" && fsfreeze --unfreeze "$1"`, strconv.Itoa(int(longest.Seconds())), dir)
		watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it outlives this process
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		back = sync.OnceFunc(func() {
			_ = syscall.Kill(-watch.Process.Pid, syscall.SIGKILL)
			_ = watch.Wait()
			if out, err := exec.Command("fsfreeze", "--unfreeze", dir).CombinedOutput(); err != nil {
				t.Errorf("thaw %s: %v: %s", dir, err, out)
			}
		})
		if out, err := exec.Command("fsfreeze", "--freeze", dir).CombinedOutput(); err != nil {
			t.Fatalf("freeze %s: %v: %s", dir, err, out)
		}
	}}
}

func silent(t testing.TB) *Disk {
	dir := t.TempDir()
	back := func() {}
	t.Cleanup(func() { back() })
	return &Disk{Dir: dir, Back: func() { back() }, Hang: func() {
		// No process reads the requests from this file.
		fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			without(t, "%s: open /dev/fuse: %v", Silent, err)
		}
		if err := syscall.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
			_ = syscall.Close(fd)
			without(t, "%s: mount: %v", Silent, err)
		}
		back = sync.OnceFunc(func() {
			_ = syscall.Close(fd) // all requests fail
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		})
	}}
}

// run runs a command that needs the rights of root.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		without(t, "%s: %s: %v: %s", Frozen, name, err, out)
	}
}

// without skips the test, or fails it with TICKFLAKE_REQUIRE_SERVERS=1.
func without(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
