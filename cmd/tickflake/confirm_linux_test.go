package main

import (
	"bufio"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
)

func TestReleaseAsks(t *testing.T) {
	for answer, released := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "\x04": false, "\x03": false} {
		t.Run(answer, func(t *testing.T) {
			state := crashedState(t)
			terminal, screen := pseudoTerminal(t, 80)
			cmd := exec.Command(binary, "lease", "release", "0", "--store", state)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			takeTerminal(cmd)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			terminal.Close()
			shown := bufio.NewReader(screen)
			question, err := shown.ReadString('?')
			require.NoError(t, err)
			assert.Regexp(t, `^node number 0 is expired, by .*, until .*\r\nrelease it\?$`, question)
			_, err = screen.WriteString(answer)
			require.NoError(t, err)
			rest := ""
			for err == nil {
				var line string
				line, err = shown.ReadString('\n')
				rest += line
			}
			code := exitCode(cmd)
			h := inspect(t, state)
			switch {
			case released:
				assert.Equal(t, 0, code)
				assert.Equal(t, lease.Released, h.State)
				assert.Contains(t, rest, "node number 0 is released; its next grant begins at "+h.Limit.UTC().Format(untilFormat))
			case answer == "\x03": // Ctrl-C
				assert.Equal(t, 130, code)
				assert.Contains(t, rest, "tickflake: interrupted")
			default:
				assert.Equal(t, 1, code)
				assert.Contains(t, rest, "tickflake: node number 0 was not released")
			}
			assert.Equal(t, released, h.State == lease.Released)
		})
	}
}
