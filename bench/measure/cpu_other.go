//go:build !unix

package measure

import "time"

// CPUTime returns the processor time that this process has used, and whether the system
// tells it.
func CPUTime() (time.Duration, bool) { return 0, false }
