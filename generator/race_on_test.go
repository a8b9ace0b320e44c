//go:build race

package generator_test

// raceDetector says that calls take ten times as long.
const raceDetector = true
