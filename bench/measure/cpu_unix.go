//go:build unix

package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the processor time that this process has used.
func CPUTime() (time.Duration, error) {
	var usage unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}
