//go:build race

package simulation

// raceEnabled says that switching between callers takes ten times as long.
const raceEnabled = true
