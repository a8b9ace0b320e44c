package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/powercut"
)

const cutDir = "/cut"

// powerCutFaults are those that package kernel runs on several machines.
func powerCutFaults() (all []Fault) {
	for _, kind := range powercut.FileSystems {
		var modules []string
		if kind != "ext4" { // which is in the kernel
			modules = append(modules, kind)
		}
		all = append(all, Fault{
			Name:      powercut.Prefix + kind,
			About:     "the disk loses its power, and all or some of the writes that were not flushed, while 8 writers use a directory on " + kind,
			Kind:      Disks,
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
		found, err := powercut.Read(dir)
		if err != nil {
			s.must(fmt.Errorf("read the directory of %s after a power cut: %w", disk, err))
		}
		found.Image = image
		s.host.send(Message{Found: &found})
		if image > 0 {
			s.must(unix.Unmount(cutDir, 0))
		}
	}
	defer func() { _ = unix.Unmount(cutDir, unix.MNT_DETACH) }()
	var running sync.WaitGroup
	for i := range powercut.Writers {
		running.Go(func() {
			tell := func(f powercut.Fact) {
				f.Writer = i
				s.host.send(Message{Fact: &f})
			}
			tell(powercut.Fact{Failed: fmt.Sprintf("it has ended: %v", powercut.Write(dir, i, tell))})
		})
	}
	running.Wait()
	s.must(errors.New("all writers have ended"))
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
