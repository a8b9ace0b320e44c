package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Figure writes a value with three significant digits, and a whole number in full:
// "33.1", "0.0331", "1,234,567". No figure of a run is known better.
func Figure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return grouped(v)
	}
	return figure(v, 3)
}

// figure writes a value with so many significant digits.
func figure(v float64, digits int) string {
	size := math.Abs(v)
	if size >= 1e15 || size != 0 && size < 1e-4 || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if rounded == 0 {
		return "0"
	}
	// The rounded size decides: 9.999 is 10.0.
	if places := digits - 1 - int(math.Floor(math.Log10(math.Abs(rounded)))); places > 0 {
		return strconv.FormatFloat(v, 'f', places, 64)
	}
	return grouped(rounded)
}

// grouped writes the nearest whole number with commas between thousands.
func grouped(v float64) string { return message.NewPrinter(language.English).Sprintf("%.0f", v) }

// Span writes a duration in one unit: "3.8 s".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		from, unit time.Duration
		name       string
	}{
		{730 * day, 8766 * time.Hour, "years"}, {2 * day, day, "d"}, {time.Hour, time.Hour, "h"}, {time.Minute, time.Minute, "min"},
		{time.Second, time.Second, "s"}, {time.Millisecond, time.Millisecond, "ms"}, {time.Microsecond, time.Microsecond, "µs"},
	} {
		if d >= u.from {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(d)/float64(u.unit)), ".0") + " " + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// Count writes a number of things: "1 core", "2 cores".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Figure(float64(n)) + " " + thing + "s"
}

// List writes words as a sentence has them: "a, b and c".
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// nothing is the value of a cell where nothing was measured.
const nothing = "–"

// String is the cell's text, or else its median without a unit, with the digits that its interval
// leaves. It is a dash where nothing was measured.
func (c Cell) String() string {
	s := c.summary()
	switch {
	case c.Text != "":
		return c.Text
	case math.IsNaN(s.Center):
		return nothing
	case len(c.Samples) == 1 && s.Center != math.Trunc(s.Center): // nobody knows how far others are
		return figure(s.Center, 2)
	case len(c.Samples) > 1 && s.Lo == s.Hi:
		return Figure(s.Center)
	}
	return figure(s.Center, digits(s))
}

// Value is the ratio with the digits that both intervals leave: "1.1×".
func (d Difference) Value() string { return figure(d.Ratio, d.digits) + "×" }

// margin is the interval around the median: "±2%". It is empty for a text, for one sample, and for an interval that rounds to nothing.
func (c Cell) margin() string {
	s := c.summary()
	if text := s.PctRangeString(); c.Text == "" && s.Lo != s.Hi && !math.IsNaN(s.Center) && text != "0%" {
		return "±" + text
	}
	return ""
}

// Value is what was measured, with its unit.
func (t Target) Value() string {
	value := t.Got.String()
	switch {
	case value == nothing:
		return nothing
	case t.Unit == "%" || t.Unit == "×":
		return value + t.Unit
	}
	return strings.TrimSpace(value + " " + t.Unit)
}
