//go:build unix

package measure

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used, and whether the system
// tells it.
func CPUTime() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
