package storetest

import "time"

// SetPatience sets how long the suites wait for what does not come.
func SetPatience(d time.Duration) { patience, recovery = d, d }

// Methods returns the names of the methods that TestHangs calls.
func Methods() (names []string) {
	for _, m := range methods {
		names = append(names, m.name)
	}
	return names
}
