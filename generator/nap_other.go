//go:build !linux

package generator

import "time"

// nap sleeps for d. The runtime's timers are as precise as it gets here.
func nap(d time.Duration) { time.Sleep(d) }
