package machine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

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
