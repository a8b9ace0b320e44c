//go:build race

package service

// raceDetector says that calls take ten times as long.
const raceDetector = true
