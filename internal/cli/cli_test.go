package cli_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

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
