package cli_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/internal/cli"
)

func TestCode(t *testing.T) {
	plain := errors.New("plain")
	assert.Equal(t, cli.Done, cli.Code(nil))
	assert.Equal(t, cli.Failed, cli.Code(plain))
	assert.Equal(t, cli.Misuse, cli.Code(fmt.Errorf("x: %w", cli.Usage(plain))))
	assert.Equal(t, 130, cli.Code(fmt.Errorf("x: %w", cli.Interruption{Signal: syscall.SIGINT})))
	assert.Equal(t, 143, cli.Code(errors.Join(cli.Interruption{Signal: syscall.SIGTERM}, cli.Usage(plain))), "the signal comes first")
	assert.ErrorIs(t, cli.Usage(plain), plain)
	assert.EqualError(t, cli.Interruption{Signal: syscall.SIGINT}, "interrupted")
}

// A signal within 100 ms of another is the same.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		for range 2 {
			time.AfterFunc(99*time.Millisecond, func() { signals <- syscall.SIGTERM })
		}
		begin := time.Now()
		cli.Settle(signals, nil)
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		assert.Empty(t, signals)

		ended := make(chan struct{})
		close(ended)
		cli.Settle(signals, ended)
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
	})
}
