package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

const (
	// writerEnv has the number of the writer that a process is, and its directory.
	writerEnv = "TICKFLAKE_KERNEL_WRITER"
	cutDir    = "/cut"
)

// powerCutFaults are those that package kernel runs on several machines.
func powerCutFaults() (all []Fault) {
	for _, kind := range powercut.FileSystems {
		var modules []string
		if kind != "ext4" { // which is in the kernel
			modules = append(modules, kind)
		}
		all = append(all, Fault{
			Name:      powercut.Prefix + kind,
			About:     "the disk loses its power, and all or some of the writes that were not flushed, while 8 processes write to a directory on " + kind,
			Kind:      "disk",
			CutsPower: kind,
			Modules:   modules,
			Run:       func(s *Stage) { cutPower(s, kind) },
		})
	}
	return all
}

// cutPower tells the host what the directories of all disks have after a power cut, that of
// the first last, and lets processes write there until the next one.
func cutPower(s *Stage, kind string) {
	var disks []string
	for letter := 'b'; letter == 'b' || exists("/dev/vd"+string(letter)); letter++ {
		disks = append(disks, "/dev/vd"+string(letter))
	}
	dir := filepath.Join(cutDir, "ids")
	for image, disk := range slices.Backward(disks) {
		if kind == "btrfs" { // it remembers a file system by its name, which all images have
			s.must(forgetDisks())
		}
		s.must(mount(disk, cutDir, kind))
		found, err := powercut.Read(s.Context(), dir)
		if err != nil {
			s.must(fmt.Errorf("read the directory of %s after a power cut: %w", disk, err))
		}
		s.must(s.Ack(powercut.Line{Found: &found, Image: image}))
		if image > 0 {
			s.must(unix.Unmount(cutDir, 0))
		}
	}
	defer func() { _ = unix.Unmount(cutDir, unix.MNT_DETACH) }()
	var running sync.WaitGroup
	for i := range powercut.Writers {
		running.Go(func() {
			if err := writer(s, i, dir); s.Context().Err() == nil {
				_ = s.Ack(powercut.Line{Fact: &powercut.Fact{Writer: i, Failed: "it has ended: " + err.Error()}})
			}
		})
	}
	running.Wait()
	s.must(fmt.Errorf("all writers have ended: %w", s.Context().Err()))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// forgetDisks is "btrfs device scan --forget".
func forgetDisks() error {
	const forget = 1<<30 | 4096<<16 | 0x94<<8 | 5 // BTRFS_IOC_FORGET_DEV
	control, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	var all [4096]byte
	if _, _, number := unix.Syscall(unix.SYS_IOCTL, control.Fd(), forget, uintptr(unsafe.Pointer(&all))); number != 0 {
		return fmt.Errorf("forget the disks of btrfs: %w", number)
	}
	return nil
}

// writer runs one writer as a process, and tells its facts to the host. It returns how it
// ended.
func writer(s *Stage, number int, dir string) error {
	c := exec.CommandContext(s.Context(), "/proc/self/exe")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", writerEnv, number, dir))
	var text strings.Builder
	c.Stderr = &text
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var fact powercut.Fact
		if err = json.Unmarshal(lines.Bytes(), &fact); err == nil {
			err = s.Ack(powercut.Line{Fact: &fact})
		}
		if err != nil {
			break
		}
	}
	_ = c.Process.Kill()
	if ended := c.Wait(); err == nil {
		err = ended
	}
	return fmt.Errorf("%v: %s", err, strings.TrimSpace(text.String()))
}

// serveWriter is a process that writes. It returns the exit code.
func serveWriter(what string) int {
	number, dir, _ := strings.Cut(what, " ")
	n, err := strconv.Atoi(number)
	if err == nil {
		err = powercut.Write(context.Background(), dir, n, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
