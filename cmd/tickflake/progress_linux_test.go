package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pseudoTerminal returns a terminal of so many columns, and the screen from which
// to read what is written on it, up to an error once nobody has it open.
func pseudoTerminal(t *testing.T, columns uint16) (terminal, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { terminal.Close() })
	return terminal, screen
}

func TestProgress(t *testing.T) {
	// A thousand IDs per second.
	slow := []string{"generate", "--layout", "41/10/0", "--count", "900"}
	tests := []struct {
		name    string
		args    []string
		columns uint16
		stdout  bool // on the terminal too
		bar     bool
	}{
		{"long run", slow, 80, false, true},
		{"narrow terminal", slow, 40, false, true},
		{"terminal of unknown width", slow, 0, false, true},
		{"short run", []string{"generate", "--count", "1000"}, 80, false, false},
		{"IDs on the terminal", slow, 80, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			terminal, screen := pseudoTerminal(t, tt.columns)
			cmd := exec.Command(binary, tt.args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, terminal
			if tt.stdout {
				cmd.Stdout = terminal
			}
			require.NoError(t, cmd.Start())
			terminal.Close()
			read, _ := io.ReadAll(screen)
			require.NoError(t, cmd.Wait())
			shown := string(read)
			if !tt.bar {
				assert.NotContains(t, shown, "%")
				assert.Equal(t, tt.stdout, shown != "")
				return
			}
			assert.Regexp(t, `^(\r +\r)?\r +\d+% \[[=>.]+\] \(\d+/900, \d+ IDs/s\) \[\d+s:\d+s\]`, shown)
			assert.Regexp(t, `\r +\r$`, shown, "the bar is wiped off")
			if tt.columns == 80 {
				for frame := range strings.SplitSeq(shown, "\r") {
					assert.Less(t, len(frame), 80)
				}
			}
			assert.Equal(t, 900, strings.Count(out.String(), "\n"))
		})
	}
}

func TestProgressIsWipedOffBeforeTheNote(t *testing.T) {
	script := filepath.Join(t.TempDir(), "long.txt")
	require.NoError(t, os.WriteFile(script, []byte("ids 600000"), 0o600))
	for line, things := range map[string]string{
		"generate --layout 41/10/0 --count 1000000000000":     "IDs",
		"chaos --seeds 1000000000000":                         "seeds",
		"chaos --strategy all --clock all --script " + script: "runs",
	} {
		t.Run(things, func(t *testing.T) {
			terminal, screen := pseudoTerminal(t, 80)
			cmd := exec.Command(binary, strings.Fields(line)...)
			cmd.Stderr = terminal
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			terminal.Close()
			shown := bufio.NewReader(screen)
			_, err := shown.ReadString('%')
			require.NoError(t, err)
			frame, err := shown.ReadString('\r')
			require.NoError(t, err)
			assert.Contains(t, frame, " "+things+"/")
			assert.Less(t, len(frame), 80)
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			rest, _ := io.ReadAll(shown)
			assert.Equal(t, 130, exitCode(cmd))
			assert.Regexp(t, `\r +\rtickflake: interrupted; \d+ of (1000000000000|27) `+things+` (written|done)\r\n$`, string(rest))
		})
	}
}

// What is said about the speed stands on a line of its own, and so do reports.
func TestProgressOfChaos(t *testing.T) {
	for _, tt := range []struct{ args, things, end string }{
		{"--strategy all --clock all", "runs", ""},
		{"--seeds 20000 --parallel 1", "seeds", `20000 seeds in [\d.]+s: [\d,]+ seeds/s\r\n`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			terminal, screen := pseudoTerminal(t, 80)
			cmd := exec.Command(binary, append([]string{"chaos"}, strings.Fields(tt.args)...)...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, terminal
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			terminal.Close()
			read, _ := io.ReadAll(screen)
			assert.Equal(t, 0, exitCode(cmd))
			assert.Regexp(t, `% \[[=>.]+\] \(\d+/\d+, \d+ `+tt.things+`/s\)`, string(read))
			assert.Regexp(t, `\r +\r`+tt.end+`$`, string(read))
			assert.NotContains(t, out.String(), "%")
			assert.True(t, strings.Contains(out.String(), "✓"))
		})
	}
}

// takeTerminal makes the terminal at standard input that from which signals come.
func takeTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}
