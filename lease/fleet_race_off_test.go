//go:build !race

package lease_test

// fleetDefault is how many seeds TestFleet runs unless it is told.
const fleetDefault = 1500
