package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A step in the middle of a call is for the suite, which counts the readings of the
// clock, and not for the simulation, which interleaves them by its seed.
func TestChaosStepsAtReadings(t *testing.T) {
	const steps = "ids 5; step -2ms at read 2; ids 5"
	got := tickflakeReading("strategy borrow:1s; "+steps, "chaos", "--script", "-")
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "✓  standard input         14         0           0         0          0s         2ms\n", "the lead shows the step")

	got = tickflakeReading("seed 3; "+steps, "chaos", "--script", "-")
	assert.Equal(t, result{1, "", `tickflake: standard input: script step 2: "step -2ms at read 2": the simulation steps the wall between operations only, as its callers read the clock in an order of the seed's; leave out the seed, or "at read 2"` + "\n"}, got)
	assert.Equal(t, 0, tickflakeReading("seed 3; ids 5; step -2ms; ids 5", "chaos", "--script", "-").code)

	assert.Contains(t, tickflake("chaos", "list", "--help").out, `with "at read 2" it does so`)
}
