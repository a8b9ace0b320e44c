//go:build race

package rig

// Race says whether the program looks for data races.
const Race = true
