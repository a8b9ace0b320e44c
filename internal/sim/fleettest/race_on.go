//go:build race

package fleettest

// Race says that the race detector is on: switching between threads takes ten times as long.
const Race = true
