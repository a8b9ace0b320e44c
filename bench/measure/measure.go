// Package measure runs the cases of a benchmark side by side: in one process, in
// turn, in random order, again and again, so that a disturbance of the machine meets
// them all alike.
package measure

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Section is one kind of measurement, of which a report has several.
type Section struct {
	ID    string
	Title string
	// Full and Quick are about how long it takes.
	Full, Quick time.Duration
	// Measure measures. When ctx ends, it returns what it has, soon. A section that
	// cannot be measured here says so in Skipped.
	Measure func(ctx context.Context, run *Run) results.Section
}

// Run is how a section is to be measured.
type Run struct {
	Quick  bool
	Budget time.Duration // what the section may take
	Rand   *rand.Rand    // for the order of the cases
	// Progress says what is running: so many parts of the section's work are done.
	Progress func(done, of int, what string)

	now func() time.Time // the time, if it is not the real one
}
