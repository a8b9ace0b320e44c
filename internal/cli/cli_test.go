package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCode(t *testing.T) {
	plain := errors.New("plain")
	assert.Equal(t, Done, Code(nil))
	assert.Equal(t, Failed, Code(plain))
	assert.Equal(t, Misuse, Code(fmt.Errorf("x: %w", Usage(plain))))
	assert.Equal(t, 130, Code(fmt.Errorf("x: %w", Interruption{Signal: syscall.SIGINT})))
	assert.Equal(t, 143, Code(errors.Join(Interruption{Signal: syscall.SIGTERM}, Usage(plain))), "the signal comes first")
	assert.ErrorIs(t, Usage(plain), plain)
	assert.EqualError(t, Interruption{Signal: syscall.SIGINT}, "interrupted")
}

// A signal within 100 ms of another is the same.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		for range 2 {
			time.AfterFunc(99*time.Millisecond, func() { signals <- syscall.SIGTERM })
		}
		begin := time.Now()
		settle(signals)
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		assert.Empty(t, signals)
	})
}
