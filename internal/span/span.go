// Package span writes times for people. You need these names: [Text] for a time.Duration, and
// [Seconds] for one that may be longer than 292 years.
package span

import (
	"fmt"
	"math"
	"time"
)

// Year is the seconds of a Julian year, 365.25 days.
const Year = 365.25 * day

const day = 24 * 60 * 60

// Text writes d as [time.Duration.String] does below two days, and else as [Seconds] does.
func Text(d time.Duration) string {
	if d.Abs() < 2*day*time.Second {
		return d.String()
	}
	return Seconds(d.Seconds())
}

// Seconds writes a time in hours below two days, in days below two years, and else in years.
func Seconds(seconds float64) string {
	switch size := math.Abs(seconds); {
	case size < 2*day:
		return time.Duration(math.Round(seconds * 1e9)).String()
	case size < 2*Year:
		return fmt.Sprintf("%.1f days", seconds/day)
	case size < 10_000*Year:
		return fmt.Sprintf("%.2f years", seconds/Year)
	}
	return fmt.Sprintf("%.3g years", seconds/Year)
}
