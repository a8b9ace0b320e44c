//go:build !race

package chaos_test

// raceDetector says that calls take ten times as long.
const raceDetector = false
