//go:build !linux

package guest

// Stage is where a fault happens. It needs Linux.
type Stage struct{}

// List returns no fault.
func List() []Fault { return nil }

// Main does nothing: the program inside of the machine is one for Linux.
func Main() {}
