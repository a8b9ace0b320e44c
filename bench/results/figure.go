package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figures are shown with so many digits, as no more of them are known, and ratios with
// so many.
const (
	digits      = 4
	ratioDigits = 3
)

// Figure writes a value for people: whole numbers in full, others with four digits,
// thousands apart: "33.12", "0.03312", "1,234,567".
func Figure(v float64) string { return significant(v, digits) }

func significant(v float64, digits int) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "?"
	case size >= 1e15 || size != 0 && size < 1e-4:
		return strconv.FormatFloat(v, 'g', digits, 64)
	case v == math.Trunc(v):
		return grouped(v)
	}
	// What counts is the rounded size: 9.9999 is 10.00.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(size, 'e', digits-1, 64), 64) // what Go writes, it reads
	if rounded >= 1000 {
		return grouped(v)
	}
	decimals := digits - 1 - int(math.Floor(math.Log10(rounded)))
	return strconv.FormatFloat(v, 'f', max(decimals, 0), 64)
}

// grouped writes the whole number nearest to v, with thousands apart.
func grouped(v float64) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var out strings.Builder
	if v < 0 && text != "0" {
		out.WriteByte('-')
	}
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return out.String()
}

// Short writes a value as it stands at an axis: "200", "0.5", "10k", "2M".
func Short(v float64) string {
	for _, step := range []struct {
		size float64
		sign string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= step.size {
			return strconv.FormatFloat(v/step.size, 'g', 3, 64) + step.sign
		}
	}
	if v != 0 && math.Abs(v) < 1e-4 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// Percent writes a share: "2.1%", "35%".
func Percent(share float64) string {
	switch {
	case math.IsNaN(share):
		return "?"
	case share >= 10:
		return ">999%"
	case share < 0.0995:
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// Value is the cell's text, or else its median, without a unit. It is a dash where
// nothing was measured.
func (c Cell) Value() string {
	if c.Text != "" {
		return c.Text
	}
	if s, ok := c.Summary(); ok {
		return Figure(s.Median)
	}
	return "–"
}

// constant says that the samples are all the same.
func (c Cell) constant() bool { return slices.Min(c.Samples) == slices.Max(c.Samples) }

// Margin is how far the median can be off: "±2.1%". It is empty for one sample, for
// samples that are all the same, and for a cell that shows a text.
func (c Cell) Margin() string {
	if c.Text != "" {
		return ""
	}
	return c.margin()
}

func (c Cell) margin() string {
	s, ok := c.Summary()
	if !ok || c.constant() {
		return ""
	}
	if spread := s.Spread(); !math.IsNaN(spread) {
		return "±" + Percent(spread)
	}
	return fmt.Sprintf("%s…%s", Figure(s.Lo), Figure(s.Hi))
}

// Label is the value after the sign of its mark, if it does not begin with that.
func (c Cell) Label() string {
	value, sign := c.Value(), c.Mark.Sign()
	if sign == "" || strings.HasPrefix(value, sign) {
		return value
	}
	return sign + " " + value
}

// Sign shows the mark without colour.
func (m Mark) Sign() string {
	switch m {
	case Good:
		return "✓"
	case Bad:
		return "✗"
	}
	return ""
}

// Value is what was measured with the unit, or a dash.
func (t Target) Value() string {
	if len(t.Got.Samples) == 0 && t.Got.Text == "" {
		return t.Got.Value()
	}
	return withUnit(t.Got.Value(), t.Unit)
}

// Limit is what the target asks for: "≤ 1.25 ×".
func (t Target) Limit() string {
	sign := "≥"
	if t.AtMost {
		sign = "≤"
	}
	return sign + " " + withUnit(strconv.FormatFloat(t.Want, 'f', -1, 64), t.Unit)
}

// withUnit puts a unit behind a figure.
func withUnit(figure, unit string) string {
	switch unit {
	case "":
		return figure
	case "%", "×":
		return figure + unit
	}
	return figure + " " + unit
}
