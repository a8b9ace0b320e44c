// Package disktest has file systems that hang on demand, for tests on Linux as root. Its own
// test makes every call of a directory while the disk hangs. Without the rights of root, loop devices
// or FUSE, a test is skipped, or fails with TICKFLAKE_REQUIRE_SERVERS=1.
package disktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Disk makes a directory on a file system that hangs from hang until back, which may be called more than
// once. It is removed when the test ends.
type Disk func(t testing.TB) (dir string, hang func() (back func()))

// Disks are the ways to hang: see [Frozen] and [Silent].
var Disks = map[string]Disk{"frozen ext4": Frozen, "silent FUSE": Silent}

// Frozen is an ext4 on a loop device that fsfreeze freezes. Writes wait, deep in the kernel: a killed
// process ends only when the disk is back. Reads still succeed.
func Frozen(t testing.TB) (dir string, hang func() (back func())) {
	dir = mount(t)
	return dir, func() (back func()) {
		// The tests' process cannot end while a thread of it waits for a frozen disk. This one outlives it.
		watch := exec.Command("sh", "-c", `sleep 120 && fsfreeze --unfreeze "$0"`, dir)
		watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, watch.Start())
		out, err := exec.Command("fsfreeze", "--freeze", dir).CombinedOutput()
		require.NoError(t, err, string(out))
		return atOnce(t, func() {
			_ = syscall.Kill(-watch.Process.Pid, syscall.SIGKILL)
			_ = watch.Wait()
			out, err := exec.Command("fsfreeze", "--unfreeze", dir).CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
}

// mount makes an ext4 on a loop device. It is unmounted when the test ends.
func mount(t testing.TB) (dir string) {
	if os.Geteuid() != 0 {
		without(t, "only root can mount a file system")
	}
	top := t.TempDir()
	image, dir := filepath.Join(top, "image"), filepath.Join(top, "disk")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, command := range [][]string{{"truncate", "--size=16M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			without(t, "%s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		unmounted := func() bool { return syscall.Unmount(dir, 0) == nil }
		if !assert.Eventually(t, unmounted, 20*time.Second, 10*time.Millisecond, "a file of %s is still open", dir) {
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	})
	return dir
}

// Silent is a FUSE file system that does not answer, mounted over the directory. All operations on paths
// wait. They fail when the disk is back.
func Silent(t testing.TB) (dir string, hang func() (back func())) {
	dir = t.TempDir()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0) // no process reads the requests from it
	if err != nil {
		without(t, "open /dev/fuse: %v", err)
	}
	return dir, func() (back func()) {
		if err := syscall.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
			without(t, "mount: %v", err)
		}
		return atOnce(t, func() {
			_ = syscall.Close(fd) // all requests fail
			assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH))
		})
	}
}

// atOnce calls back once: when the test says so, or when it ends.
func atOnce(t testing.TB, back func()) func() {
	back = sync.OnceFunc(back)
	t.Cleanup(back)
	return back
}

// without skips the test, or fails it with TICKFLAKE_REQUIRE_SERVERS=1.
func without(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
