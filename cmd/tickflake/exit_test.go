package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The end of --timeout comes first and once, wherever a driver has put it.
func TestTextOfTimeout(t *testing.T) {
	timeout := &timeoutError{2 * time.Second}
	refused := errors.New("redis at h: connection refused")
	for _, err := range []error{
		fmt.Errorf("%w: %w", timeout, refused),
		fmt.Errorf("%w: %w", refused, timeout),
		fmt.Errorf("%w: %w: %w", context.DeadlineExceeded, timeout, refused),
		fmt.Errorf("%w: %w: %w: %w", timeout, refused, context.DeadlineExceeded, timeout),
	} {
		assert.Equal(t, "gave up after 2s (--timeout): redis at h: connection refused", (&lateError{timeout, err}).Error())
	}
	assert.Equal(t, "gave up after 2s (--timeout)", (&lateError{timeout, timeout}).Error())
}
