//go:build unix

package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process ends when it is asked to, is killed if it stays, and is killed when the context of its start ends.
func TestProcessEnds(t *testing.T) {
	defer func(before time.Duration) { quitWait = before }(quitWait)
	quitWait = 200 * time.Millisecond
	never := errors.New("it never is")
	stop := func(ctx context.Context, _ func(), c Config, there func() error) (string, error) {
		c.Ready = func(context.Context) error { return there() }
		p, err := Start(ctx, c)
		if err == nil {
			err = errors.Join(p.Stop(), p.Stop()) // the second does nothing
		}
		return p.Output(), err
	}
	for name, tt := range map[string]struct {
		trap string // the answer to SIGQUIT
		ends func(ctx context.Context, cancel func(), c Config, there func() error) (output string, err error)
		want error
		says string
	}{
		"asked": {"'echo asked; exit 0'", stop, nil, "asked\n"},
		"stays": {"''", stop, nil, ""},
		"context of Start": {"''", func(ctx context.Context, cancel func(), c Config, there func() error) (string, error) {
			c.Ready = func(context.Context) error {
				if there() == nil {
					cancel()
				}
				return never
			}
			_, err := Start(ctx, c)
			return "", err
		}, context.Canceled, ""},
		"context of Run": {"''", func(ctx context.Context, cancel func(), c Config, there func() error) (string, error) {
			go func() {
				for there() != nil && ctx.Err() == nil {
					time.Sleep(poll)
				}
				cancel()
			}()
			return Run(ctx, c)
		}, context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pid := filepath.Join(t.TempDir(), "pid")
			// Its steps are short: a signal just before one that blocks would be seen after it.
			c := Config{Path: "/bin/sh", Dir: filepath.Dir(pid), Quit: syscall.SIGQUIT,
				Args: []string{"-c", "trap " + tt.trap + " QUIT; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.01; done"}}
			output, err := tt.ends(ctx, cancel, c, func() error { _, err := os.Stat(pid); return err })
			assert.ErrorIs(t, err, tt.want)
			assert.Contains(t, output, tt.says)
			text, err := os.ReadFile(pid)
			require.NoError(t, err)
			id, err := strconv.Atoi(strings.TrimSpace(string(text)))
			require.NoError(t, err)
			assert.ErrorIs(t, syscall.Kill(id, 0), syscall.ESRCH)
		})
	}
}
