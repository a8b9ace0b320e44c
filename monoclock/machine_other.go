//go:build !linux

package monoclock

import "time"

// Windows counts suspends in its monotonic time, and elsewhere no clock that Go reads tells them.
var bootTime, monotonic func() time.Duration

// kernelError says nothing.
func kernelError() (most time.Duration, ok bool) { return 0, false }
