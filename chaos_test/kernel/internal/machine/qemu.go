package machine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

const qemu = "qemu-system-x86_64"

var errHost = fmt.Errorf("a machine needs a host with linux/amd64, and this is %s/%s: the program inside of the machine is this very program", runtime.GOOS, runtime.GOARCH)

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

// arguments returns the command line of QEMU. The console ttyS1 and the control are
// sockets that are inherited as these numbers, the serial line is a file.
func arguments(c Config, console, control int, serial string) []string {
	a := []string{
		// Page tables of five levels, which the newest processors have, cost boot time.
		"-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
		"-m", "512", "-smp", "2",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", c.Kernel.Image, "-append", commandLine,
		"-chardev", "file,id=log,path=" + serial, "-serial", "chardev:log",
		"-chardev", "socket,id=console,fd=" + strconv.Itoa(console), "-serial", "chardev:console",
		"-chardev", "socket,id=control,fd=" + strconv.Itoa(control), "-mon", "chardev=control,mode=control",
	}
	for i, d := range c.Disks {
		// An image need not be flushed: only QEMU is killed, not its host.
		drive := "driver=raw,file.driver=file,cache=unsafe,file.filename=" + comma(d.Image)
		if d.NBD != "" {
			drive = "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=" + comma(d.NBD)
		}
		a = append(a, "-drive", fmt.Sprintf("if=none,id=disk%d,%s", i, drive),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d", i))
	}
	if c.NoRTC {
		a = append(a, "-rtc", "base=1970-01-01T00:00:00")
	}
	if c.Network {
		a = append(a, "-netdev", "user,id=net,ipv6=off", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	if c.Saved != "" {
		a = append(a, "-incoming", "defer")
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

// comma quotes a value of an option of QEMU.
func comma(s string) string { return strings.ReplaceAll(s, ",", ",,") }
