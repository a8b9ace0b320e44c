//go:build race

package scorecard

const raceDetector = true
