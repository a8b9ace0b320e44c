package main

import (
	"bufio"
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A signal is noticed also while no number needs the store.
func TestInterruptedAmongReservedNumbers(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var printed strings.Builder
	last := int64(0)
	err := printNumbers(ctx, 2000, bufio.NewWriter(&printed), progress(&printed, 2000, false), func(context.Context) (int64, error) {
		if last++; last == 1000 {
			cancel(&interruption{signal: syscall.SIGINT})
		}
		return last, nil
	})
	assert.EqualError(t, err, "interrupted; 1000 of 2000 numbers written")
	assert.Equal(t, numbers(1, 1000, 1), printed.String(), "a number that was taken is printed")
}

// All numbers are written before the rest is given back, and a short run shows no bar.
func TestShortRun(t *testing.T) {
	var printed, shown strings.Builder
	last := int64(0)
	err := printNumbers(t.Context(), 3, bufio.NewWriter(&printed), progress(&shown, 3, true), func(context.Context) (int64, error) {
		last++
		return last, nil
	})
	require.NoError(t, err)
	assert.Equal(t, numbers(1, 3, 1), printed.String())
	assert.Empty(t, shown.String())
}
