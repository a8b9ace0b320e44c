package measure

import (
	"time"

	"golang.org/x/sys/windows"
)

// CPUTime returns the processor time that this process has used.
func CPUTime() (time.Duration, error) {
	var created, ended, kernel, user windows.Filetime
	err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user)
	ticks := func(t windows.Filetime) time.Duration {
		return time.Duration(t.HighDateTime)<<32 | time.Duration(t.LowDateTime)
	}
	return (ticks(kernel) + ticks(user)) * 100, err // it counts in 100 ns
}
