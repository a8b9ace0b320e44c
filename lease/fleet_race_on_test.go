//go:build race

package lease_test

// fleetDefault is how many seeds TestFleet runs unless it is told. One goroutine runs
// at a time, so the race detector has nothing to find, and takes ten times as long.
const fleetDefault = 90
