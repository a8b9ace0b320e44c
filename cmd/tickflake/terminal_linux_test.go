package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal runs tickflake on a pseudo-terminal. Its output is what the screen shows.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	answer, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	ts.Check(err)
	defer screen.Close()
	fd := int(screen.Fd())
	ts.Check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	ts.Check(err)
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	ts.Check(err)
	modes.Lflag |= unix.NOFLSH // a signal drops nothing that the program has written
	ts.Check(unix.IoctlSetTermios(fd, unix.TCSETS, modes))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)

	cmd := child(ts, "tickflake", args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0} // signals come from there
	err = cmd.Start()
	tty.Close()
	ts.Check(err)
	ts.Defer(func() { _ = cmd.Process.Kill() })

	var shown strings.Builder
	like, chunk := regexp.MustCompile(args[1]), make([]byte, 4096)
	for err == nil && !like.MatchString(shown.String()) {
		var n int
		n, err = screen.Read(chunk)
		shown.Write(chunk[:n])
	}
	_, _ = screen.WriteString(answer)
	_, _ = io.Copy(&shown, screen) // the end of a terminal is an error
	_ = cmd.Wait()
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("exit code %s, want %s:\n%s", code, args[0], &shown)
	}
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(shown.String(), "\r\n", "\n"))
}
