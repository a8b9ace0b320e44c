//go:build !race

package fleet

// Race says whether the program looks for data races.
const Race = false
