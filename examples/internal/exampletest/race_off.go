//go:build !race

package exampletest

const race = false
