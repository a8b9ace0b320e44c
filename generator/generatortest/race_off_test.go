//go:build !race

package generatortest_test

const raceDetector = false
