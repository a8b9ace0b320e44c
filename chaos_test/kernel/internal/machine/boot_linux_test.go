//go:build amd64

package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Getenv(InitVariable) != "" {
		guest()
	}
	if saved := os.Getenv("MACHINE_TEST_PARENT"); saved != "" {
		parent(saved)
	}
	os.Exit(m.Run())
}

// guest is process 1 of the machines of these tests: it answers each line.
func guest() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(unix.Mount("proc", "/proc", "proc", 0, ""))
	must(unix.Mount("sys", "/sys", "sysfs", 0, ""))
	must(unix.Mount("dev", "/dev", "devtmpfs", 0, ""))
	modules, err := os.ReadFile("/modules")
	must(err)
	for name := range strings.FieldsSeq(string(modules)) {
		f, err := os.Open(name)
		must(err)
		must(unix.FinitModule(int(f.Fd()), "", 0))
		must(f.Close())
	}
	tty, err := os.OpenFile("/dev/ttyS1", os.O_RDWR|unix.O_NOCTTY, 0)
	must(err)
	t, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	must(err)
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	must(unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, t))
	fmt.Fprintln(tty, "ready")
	count := 0
	in := bufio.NewScanner(tty)
	for in.Scan() {
		command, text, _ := strings.Cut(in.Text(), " ")
		switch command {
		case "echo":
			fmt.Fprintln(tty, text)
		case "count":
			count++
			fmt.Fprintln(tty, count)
		case "year":
			fmt.Fprintln(tty, time.Now().UTC().Year())
		case "cat":
			b, err := os.ReadFile(text)
			fmt.Fprintln(tty, strings.Join(strings.Fields(string(b)), " "), err)
		case "write":
			f, err := os.OpenFile("/dev/vda", os.O_WRONLY, 0)
			must(err)
			_, err = f.WriteString(text)
			must(errors.Join(err, f.Sync(), f.Close()))
			fmt.Fprintln(tty, "written")
		case "dial":
			lo, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			must(err)
			r, err := unix.NewIfreq("eth0")
			must(err)
			must(r.SetInet4Addr([]byte{10, 0, 2, 15}))
			must(unix.IoctlIfreq(lo, unix.SIOCSIFADDR, r))
			r.SetUint16(unix.IFF_UP)
			must(unix.IoctlIfreq(lo, unix.SIOCSIFFLAGS, r))
			conn, err := net.Dial("tcp", "10.0.2.2:"+text)
			must(err)
			answer, err := bufio.NewReader(conn).ReadString('\n')
			must(err)
			fmt.Fprint(tty, answer)
			conn.Close()
		case "suspend":
			must(os.WriteFile("/sys/power/state", []byte("mem"), 0))
			n, err := os.ReadFile("/sys/power/suspend_stats/success")
			fmt.Fprintln(tty, "slept", strings.TrimSpace(string(n)), err)
		case "nap":
			before := suspended()
			must(os.WriteFile("/sys/class/rtc/rtc0/wakealarm", []byte("+"+text), 0))
			must(os.WriteFile("/sys/power/state", []byte("mem"), 0))
			fmt.Fprintln(tty, "napped", suspended() > before)
		case "panic":
			panic(text)
		case "off":
			must(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
		}
	}
	panic(in.Err())
}

// suspended is how long the machine was suspended: only one of the two clocks runs then.
func suspended() time.Duration {
	var boot, mono unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	return time.Duration(boot.Nano() - mono.Nano())
}

// parent is a program that is killed while its machine runs.
func parent(saved string) {
	k, err := Find()
	if err == nil {
		var m *Machine
		if m, err = Boot(context.Background(), Config{Kernel: k, Saved: saved, Disks: disks(), RTC: rtc, Network: true}); err == nil {
			fmt.Println(m.cmd.Process.Pid)
			err = m.Wait()
		}
	}
	panic(err)
}

func disks() []Disk { return []Disk{{Image: os.Getenv("MACHINE_TEST_DISK")}} }

var rtc = time.Date(2033, 5, 6, 7, 8, 9, 0, time.UTC)

func kernelOrSkip(t *testing.T) Kernel {
	k, err := Find()
	if err == nil {
		_, err = find()
	}
	if err != nil && os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "" {
		require.NoError(t, err)
	}
	if err != nil {
		t.Skip(err)
	}
	return k
}

// line returns the next line of the guest.
func line(t *testing.T, m *Machine) string {
	t.Helper()
	select {
	case l, ok := <-m.Lines():
		if !ok {
			require.NoError(t, m.Wait())
			t.Fatal("the machine has ended")
		}
		return string(l)
	case <-time.After(time.Minute):
		t.Fatalf("no line of the guest in a minute; the last lines were:\n%s", m.tail.last())
		return ""
	}
}

// ask sends a line, and returns the answer.
func ask(t *testing.T, m *Machine, request string) string {
	t.Helper()
	require.NoError(t, m.Send([]byte(request)))
	return line(t, m)
}

func status(t *testing.T, m *Machine) string {
	t.Helper()
	s, err := m.qmp.execute("query-status", nil)
	require.NoError(t, err)
	return string(s)
}

// TestMachine does everything with one boot: copies of its memory are fast.
func TestMachine(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk, 'a'.img")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	t.Setenv("MACHINE_TEST_DISK", image)
	greeter, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer greeter.Close()
	go func() {
		for {
			c, err := greeter.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "hello from the host")
			c.Close()
		}
	}()

	c := Config{Kernel: kernelOrSkip(t), Log: t.Output(), Disks: disks(), RTC: rtc, Network: true, Modules: []string{"dm-flakey"}}
	begin := time.Now()
	m, err := Boot(t.Context(), c)
	require.NoError(t, err)
	defer m.Kill()
	require.Equal(t, "ready", line(t, m))
	t.Logf("ready after %v", time.Since(begin))
	require.Equal(t, "a b", ask(t, m, "echo a b"))
	long := strings.Repeat("x", 30_000)
	require.Equal(t, long, ask(t, m, "echo "+long))
	require.Equal(t, "2033", ask(t, m, "year"))
	require.Equal(t, "tsc <nil>", ask(t, m, "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"))
	require.Contains(t, ask(t, m, "cat /proc/modules"), "dm_flakey")
	_, port, _ := net.SplitHostPort(greeter.Addr().String())
	require.Equal(t, "hello from the host", ask(t, m, "dial "+port))
	require.Equal(t, "written", ask(t, m, "write text on a disk"))
	written, err := os.ReadFile(image)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(written), "text on a disk"))

	require.Contains(t, status(t, m), "running")
	require.NoError(t, m.Pause())
	require.Contains(t, status(t, m), "paused")
	require.NoError(t, m.Send([]byte("count")))
	require.NoError(t, m.Resume())
	require.Equal(t, "1", line(t, m))

	require.NoError(t, m.Send([]byte("suspend")))
	require.NoError(t, m.Wake(0))
	require.Equal(t, "slept 1 <nil>", line(t, m))
	require.NoError(t, m.Send([]byte("suspend")))
	require.NoError(t, m.Wake(0), "a second time")
	require.Equal(t, "slept 2 <nil>", line(t, m))

	require.Equal(t, "napped true", ask(t, m, "nap 2"), "its own clock wakes it")

	begin = time.Now()
	c.Saved = filepath.Join(t.TempDir(), "it's saved")
	require.NoError(t, m.Save(c.Saved))
	s, err := os.Stat(c.Saved)
	require.NoError(t, err)
	t.Logf("saved %d MiB in %v", s.Size()>>20, time.Since(begin))
	t.Run("copy", func(t *testing.T) {
		begin := time.Now()
		copied, err := Boot(t.Context(), c)
		require.NoError(t, err)
		defer copied.Kill()
		require.Equal(t, "2", ask(t, copied, "count"), "the memory of the copy is that of the original")
		t.Logf("answers after %v", time.Since(begin))
		require.Equal(t, "3", ask(t, copied, "count"))
		require.NoError(t, copied.Kill())
		_, ok := <-copied.Lines()
		require.False(t, ok, "no lines after Kill")
		require.NoError(t, copied.Wait())
		require.Error(t, copied.Send(nil))
		require.ErrorIs(t, copied.Pause(), errGone)
	})
	t.Run("ctx", func(t *testing.T) {
		cause := errors.New("a test cancels")
		ctx, cancel := context.WithCancelCause(t.Context())
		copied, err := Boot(ctx, c)
		require.NoError(t, err)
		defer copied.Kill()
		cancel(cause)
		require.ErrorIs(t, copied.Wait(), cause)
	})
	t.Run("panic", func(t *testing.T) {
		copied, err := Boot(t.Context(), c)
		require.NoError(t, err)
		defer copied.Kill()
		require.NoError(t, copied.Send([]byte("panic of a test")))
		err = copied.Wait()
		require.ErrorContains(t, err, "the kernel panicked or rebooted")
		require.ErrorContains(t, err, "Attempted to kill init")
	})
	t.Run("parent killed", func(t *testing.T) {
		// Orphans come to this process, so it sees how QEMU ends.
		require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "MACHINE_TEST_PARENT="+c.Saved)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		text, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		survivor := time.AfterFunc(20*time.Second, func() { unix.Kill(pid, unix.SIGTERM) })
		defer survivor.Stop()
		var s unix.WaitStatus
		_, err = unix.Wait4(pid, &s, 0, nil)
		require.NoError(t, err)
		require.Equal(t, unix.SIGKILL, s.Signal())
	})
	require.NoError(t, m.Resume())
	require.Equal(t, "2", ask(t, m, "count"), "the original goes on too")
	require.NoError(t, m.Save(c.Saved), "a second time")
	require.NoError(t, m.Resume())
	require.Equal(t, "3", ask(t, m, "count"))
	require.NoError(t, m.Send([]byte("off")))
	require.NoError(t, m.Wait())
}

func TestNoClock(t *testing.T) {
	k := kernelOrSkip(t)
	m, err := Boot(t.Context(), Config{Kernel: k, NoRTC: true, Cores: 1, Memory: 256})
	require.NoError(t, err)
	defer m.Kill()
	require.Equal(t, "ready", line(t, m))
	require.Equal(t, "1970", ask(t, m, "year"))
}

// TestQEMURefuses shows the error of a machine that does not even start.
func TestQEMURefuses(t *testing.T) {
	k := kernelOrSkip(t)
	_, err := Boot(t.Context(), Config{Kernel: k, Disks: []Disk{{Image: "/no/such/image"}}})
	require.ErrorContains(t, err, "/no/such/image")
	_, err = Boot(t.Context(), Config{Kernel: k, Saved: "/no/such/file"})
	require.ErrorContains(t, err, "/no/such/file")
	half := filepath.Join(t.TempDir(), "half")
	require.NoError(t, os.WriteFile(half, nil, 0o600))
	_, err = Boot(t.Context(), Config{Kernel: k, Saved: half})
	require.ErrorContains(t, err, "nothing was saved")
	require.NoError(t, os.WriteFile(half, []byte("QEVM\x00\x00\x00\x03"), 0o600))
	_, err = Boot(t.Context(), Config{Kernel: k, Saved: half})
	require.ErrorContains(t, err, "load of migration failed")
}
