package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Kernel is a kernel of Debian: the image, and the directory of its modules.
type Kernel struct {
	Image   string // vmlinuz
	Modules string // lib/modules/VERSION
	Version string // 6.1.0-56-cloud-amd64
	QEMU    string // its path; "": that of PATH
}

// KernelVariable names the directory of a kernel.
const KernelVariable = "TICKFLAKE_KERNEL"

// Find returns a cloud kernel of Debian in the first of these directories that
// has one: $TICKFLAKE_KERNEL, the user's cache directory (tickflake/kernel), / . Its
// error says how to get one.
func Find() (Kernel, error) {
	var dirs []string
	if d := os.Getenv(KernelVariable); d != "" {
		dirs = []string{d} // A directory that was named and is wrong must not go unseen.
	} else {
		if d, err := cache(); err == nil {
			dirs = append(dirs, d)
		}
		dirs = append(dirs, "/")
	}
	for _, d := range dirs {
		if k, ok := kernelIn(d); ok {
			return k, nil
		}
	}
	return Kernel{}, fmt.Errorf("machine: there is no boot/vmlinuz-*-cloud-amd64 with lib/modules in %s: install Debian's package linux-image-cloud-amd64, or unpack it into one of these directories, or name its directory in TICKFLAKE_KERNEL",
		strings.Join(dirs, " or "))
}

// FindVMClock returns a kernel with the module of the device VMClock, and a QEMU with the device: those that
// vmclock.sh has put into the user's cache directory (tickflake/vmclock). Its error says how to get them.
func FindVMClock() (Kernel, error) {
	beside, err := cache()
	dir := filepath.Join(filepath.Dir(beside), "vmclock")
	k, ok := kernelIn(dir)
	if err != nil || !ok {
		return k, fmt.Errorf("machine: there is no boot/vmlinuz-*-cloud-amd64 with lib/modules in %s: cmd/tickflake-chaos/kernel/vmclock.sh downloads it, with a QEMU that has the device", dir)
	}
	if own := filepath.Join(dir, "usr", "bin", qemu); exec.Command(own, "--version").Run() == nil {
		k.QEMU = own
	}
	return k, nil
}

// cache is where Fetch puts a kernel.
func cache() (string, error) {
	d, err := os.UserCacheDir()
	return filepath.Join(d, "tickflake", "kernel"), err
}

// kernelIn returns the kernel in a directory, the last by name if there are several.
func kernelIn(dir string) (k Kernel, ok bool) {
	images, _ := fs.Glob(os.DirFS(dir), "boot/vmlinuz-*-cloud-amd64")
	for _, image := range images {
		version := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
		modules := filepath.Join(dir, "lib", "modules", version)
		if s, err := os.Stat(modules); err == nil && s.IsDir() {
			k, ok = Kernel{Image: filepath.Join(dir, image), Modules: modules, Version: version}, true
		}
	}
	return k, ok
}

// fetch downloads the package into a directory of its own, and moves its modules, and then its image, to where
// Find looks: it takes an image that has modules. Another process may have moved the same files.
const fetch = `set -eu
name=$(apt-cache depends linux-image-cloud-amd64 | grep -o 'linux-image-[0-9].*-cloud-amd64')
version=${name#linux-image-}
[ ! -e "../boot/vmlinuz-$version" ] || exit 0
apt-get -qq download "$name"
dpkg-deb -x ./*.deb .
mkdir -p ../lib/modules ../boot
mv -T "lib/modules/$version" "../lib/modules/$version" || [ -e "../lib/modules/$version" ]
mv "boot/vmlinuz-$version" ../boot/`

// Fetch downloads Debian's cloud kernel with apt-get into the user's cache directory,
// unless it is there already. It needs no rights.
func Fetch(ctx context.Context) (k Kernel, err error) {
	var temp string
	dir, err := cache()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		temp, err = os.MkdirTemp(dir, "download-")
	}
	if err != nil {
		return k, fmt.Errorf("machine: %w", err)
	}
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, "sh", "-c", fetch)
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second // for a child that keeps the output open
	out, err := cmd.CombinedOutput()
	k, ok := kernelIn(dir)
	if err == nil && !ok {
		err = errors.New("the package has no kernel with modules")
	}
	if err != nil {
		return k, fmt.Errorf("machine: Debian's package linux-image-cloud-amd64 cannot be downloaded: %w: run apt-get update, or unpack it by hand and name its directory in TICKFLAKE_KERNEL: %s", err, strings.TrimSpace(string(out)))
	}
	return k, nil
}

const qemu = "qemu-system-x86_64"

var errHost = fmt.Errorf("a machine needs a host with linux/amd64, and this is %s/%s: the program inside of the machine is this very program; 'tickflake-chaos run' runs everywhere, in virtual time", runtime.GOOS, runtime.GOARCH)

// find returns the path of QEMU.
func find() (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("machine: %w", errHost)
	}
	path, err := exec.LookPath(qemu)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("machine: there is no %s in PATH: install it (on Debian and Ubuntu: apt-get install qemu-system-x86)", qemu)
	}
	return path, err
}

// Version returns the version of QEMU, as "7.2.22". Its error says how to get QEMU.
func Version(ctx context.Context) (string, error) {
	program, err := find()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("machine: %s --version: %w", program, err)
	}
	_, v, ok := strings.Cut(string(out), "version ")
	if !ok {
		return "", fmt.Errorf("machine: %s --version printed no version: %q", program, out)
	}
	return strings.Fields(v + " ?")[0], nil
}

// arguments returns the command line of QEMU: the kernel prints to its standard error, and the
// console ttyS1 and the control are sockets that it inherits as 3 and 4.
func arguments(c Config, initramfs string) []string {
	a := []string{
		// Page tables of five levels, which the newest processors have, cost boot time.
		"-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
		"-m", "512", "-smp", "2",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", c.Kernel.Image, "-append", commandLine,
		"-chardev", "file,id=log,path=/dev/stderr,append=on", "-serial", "chardev:log",
		"-chardev", "socket,id=console,fd=3", "-serial", "chardev:console",
		"-chardev", "socket,id=control,fd=4", "-mon", "chardev=control,mode=control",
	}
	if c.Saved != "" {
		a = append(a, "-incoming", "defer")
	} else {
		a = append(a, "-initrd", initramfs)
	}
	for i, d := range c.Disks {
		// An image need not be flushed: only QEMU is killed, not its host.
		file := `{"driver":"file","filename":%q,"cache":{"no-flush":true}}`
		node := fmt.Sprintf(`"driver":"raw","file":`+file, d.Image)
		if d.Log != "" {
			node = fmt.Sprintf(`"driver":"blklogwrites","file":`+file+`,"log":`+file, d.Image, d.Log)
		}
		// The driver's log of a request that writes zeroes has gaps.
		a = append(a, "-blockdev", fmt.Sprintf(`{"node-name":"disk%d",%s}`, i, node),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,write-zeroes=off,discard=off", i))
	}
	if c.VMClock {
		a = append(a, "-device", "vmclock")
	}
	if c.NoRTC {
		a = append(a, "-rtc", "base=1970-01-01T00:00:00")
	}
	if c.Network {
		a = append(a, "-netdev", "user,id=net,ipv6=off", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	return a
}

// InitVariable is set in the environment of process 1, and of no other program.
const InitVariable = "TICKFLAKE_KERNEL_INIT"

// commandLine is that of the kernel. Its clock source is the tsc, which emulation makes
// as good as that of a new processor, and cheap to read. The second line leaves out work
// that has no use here and costs a tenth of the boot: protection from attackers, tests of
// ciphers, and the search for absent devices.
const commandLine = InitVariable + "=1 console=ttyS0 quiet panic=-1 tsc=reliable clocksource=tsc " +
	"nokaslr mitigations=off init_on_alloc=0 cryptomgr.notests i8042.noaux i8042.nokbd 8250.nr_uarts=2 no_timer_check"
