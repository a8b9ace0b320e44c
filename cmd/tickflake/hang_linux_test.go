package main

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/disktest"

	"github.com/tickflake/tickflake/internal/cli"
)

// Every command gives up after --timeout while the disk hangs, and names the directory. The
// kernel keeps a process until its threads need a frozen disk no more, so the message counts.
func TestCommandsWhileADiskHangs(t *testing.T) {
	const slack = time.Minute
	for _, kind := range disktest.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disk := disktest.New(t, kind)
			path := filepath.Join(disk.Dir, "state")
			// start starts a command. The returned function waits for its message, or its end.
			start := func(stdout io.Writer, args, timeout string) (cmd *exec.Cmd, said func() string) {
				r, w := pipe(t)
				cmd = exec.Command(binary, append(strings.Fields(args), "--store", path, "--timeout", timeout)...)
				cmd.Stdout, cmd.Stderr = stdout, w
				require.NoError(t, cmd.Start())
				w.Close()
				t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that failed
				return cmd, func() string {
					require.NoError(t, r.SetReadDeadline(time.Now().Add(slack)))
					for lines := bufio.NewReader(r); ; {
						line, err := lines.ReadString('\n')
						if strings.HasPrefix(line, "tickflake: ") || errors.Is(err, io.EOF) {
							return line
						}
						require.NoErrorf(t, err, "%s does not end", args)
					}
				}
			}
			ids, w := pipe(t)
			running, gaveUp := start(w, "generate --window 300ms --count 1000000000000", "3s")
			w.Close()
			first, err := bufio.NewReader(ids).ReadString('\n')
			require.NoError(t, err, first)
			go func() { _, _ = io.Copy(io.Discard, ids) }()

			created, wasCreated := start(nil, "sequence create orders", "30s")
			require.Empty(t, wasCreated())
			require.Equal(t, cli.Done, exitCode(created))

			disk.Hang()
			all := map[*exec.Cmd]func() string{running: gaveUp}
			for _, args := range []string{
				"generate", "lease list", "lease list 0-3", "lease check", "lease release 0 --yes", "lease reserve 7 --until 2090-02-02",
				"sequence create invoices", "sequence next orders", "sequence list", "sequence show orders",
				"sequence set orders --next 100 --yes", "sequence delete orders --yes",
			} {
				cmd, said := start(nil, args, "500ms")
				all[cmd] = said
			}
			want := make(map[*exec.Cmd]int)
			for cmd, said := range all {
				text := said()
				t.Logf("%s: %s", strings.Join(cmd.Args[1:], " "), text)
				if text != "" {
					want[cmd] = cli.Failed
				}
				switch {
				case cmd == running:
					assert.Contains(t, text, "grant of node 0 ended")
				case strings.Contains(text, "(--timeout)") || kind == disktest.Silent: // a frozen disk can be read
					assert.Contains(t, text, "gave up after 500ms (--timeout)")
					assert.Contains(t, text, path)
				}
			}
			if kind == disktest.Frozen {
				disk.Back()
			}
			for cmd := range all {
				assert.Equal(t, want[cmd], exitCode(cmd), cmd.Args)
			}
			disk.Back()
			again, said := start(nil, "generate", "30s")
			assert.Empty(t, said())
			assert.Equal(t, cli.Done, exitCode(again))
		})
	}
}
