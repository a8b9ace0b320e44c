package monoclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the boot, with suspends, and monotonic without. Both are slewed alike.
func bootTime() time.Duration { return gettime(unix.CLOCK_BOOTTIME) }

func monotonic() time.Duration { return gettime(unix.CLOCK_MONOTONIC) }

func gettime(clock int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0 // both clocks, as of a sandbox: no suspend is counted
	}
	return time.Duration(t.Nano())
}

// kernelError returns how far the wall clock may be off. The bound decides, and never STA_UNSYNC, which chrony without rtcsync
// does not clear. No mode is set, so that no privilege is needed; a sandbox may refuse all the same.
func kernelError() (most time.Duration, ok bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return 0, false
	}
	return time.Duration(t.Maxerror) * time.Microsecond, true
}
