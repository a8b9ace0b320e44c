//go:build !linux

package generator

import "time"

// nap sleeps for d. Nothing is more precise here than the runtime's timers.
func nap(d time.Duration) { time.Sleep(d) }
