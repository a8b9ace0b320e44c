package ways

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// rate is a published figure of so many IDs per second.
func rate(who string, perSecond float64) string {
	return fmt.Sprintf("%s µs (%s: %s/s)", results.Figure(1e6/perSecond), who, results.Figure(perSecond))
}

// total is a published figure of so many IDs in a time.
func total(ids int, took time.Duration) string {
	return fmt.Sprintf("%s µs (%s in %s ms)", results.Figure(float64(took.Microseconds())/float64(ids)),
		results.Figure(float64(ids)), results.Figure(float64(took.Milliseconds())))
}
