//go:build !race

package exampletest

// Race says whether the test looks for data races.
const Race = false
