package main

import (
	"bufio"
	"context"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// A signal is noticed also while no number needs the store.
func TestInterruptedAmongReservedNumbers(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var printed strings.Builder
	last := int64(0)
	err := printNumbers(ctx, 2000, bufio.NewWriter(&printed), progress(&printed, 2000, false), func(context.Context) (int64, error) {
		if last++; last == 1000 {
			cancel(cli.Interruption{Signal: syscall.SIGINT})
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

// A run goes on after an outage that is shorter than --timeout, and ends with the numbers that
// it has printed after a longer one.
func TestNextInAnOutage(t *testing.T) {
	var passing, failing atomic.Int64 // swaps that succeed, and then fail
	memory := storetest.NewMemory()
	stores.Register("outagetest", func(context.Context, string) (stores.Store, error) {
		s := memory.Client()
		s.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind == storetest.OpSwap && passing.Add(-1) < 0 && failing.Add(-1) >= 0 {
				return storetest.Unavailable
			}
			return storetest.None
		}
		return s, nil
	})
	run := on("outagetest://h")
	require.Zero(t, run("sequence create orders --step 10").code)
	failing.Store(2)
	assert.Equal(t, result{0, numbers(1, 30, 1), ""}, run("sequence next orders --count 30 --timeout 1m"))

	// Numbers that cannot be given back are reported, and are no error.
	passing.Store(1)
	failing.Store(math.MaxInt64)
	got := run("sequence next orders --count 5 --timeout 200ms")
	assert.Zero(t, got.code)
	assert.Equal(t, numbers(31, 35, 1), got.out)
	// The refill behind them may have failed before the end of the run, or not have begun.
	assert.Regexp(t, `^tickflake: sequence "orders": the rest of the segment was not given back: 5 numbers are missing(, and 10 more if the last write has reached the store)?: .*\n$`, got.err)

	got = run("sequence next orders --count 30 --timeout 200ms")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.out)
	assert.Regexp(t, `^tickflake: gave up after 200ms \(--timeout\): sequence "orders": .*`+storetest.ErrFault.Error()+`; 0 of 30 numbers written\n$`, got.err)
}
