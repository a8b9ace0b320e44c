package storetest

import "time"

// SetPatience sets how long the suites wait for what does not come.
func SetPatience(d time.Duration) { patience, recovery = d, d }
