package command

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FormatJSON is the value of a flag --format for one JSON object per line.
const FormatJSON = "json"

// Print writes the items in a format: for [FormatJSON] each as one line of JSON, else as the
// rows of a [Table].
func Print[T any](w io.Writer, format string, items []T, header []string, row func(T) []string) error {
	if format != FormatJSON {
		var rows [][]string
		for _, item := range items {
			rows = append(rows, row(item))
		}
		return Table(w, header, rows)
	}
	encoder := json.NewEncoder(w)
	for _, item := range items {
		if err := encoder.Encode(item); err != nil {
			return err
		}
	}
	return nil
}

// Table writes rows below a header, in columns that are two blanks apart. A nil header has no
// line. A column whose name begins with > ends at its right edge. A last cell beyond or short of
// the header's last column has any length.
func Table(w io.Writer, header []string, rows [][]string) error {
	var right []bool
	var names []string
	for _, name := range header {
		name, is := strings.CutPrefix(name, ">")
		names, right = append(names, name), append(right, is)
	}
	if header != nil {
		rows = append([][]string{names}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 || len(row) == len(header) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			blanks := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if i < len(right) && right[i] && (i < len(row)-1 || len(row) == len(header)) {
				line.WriteString(blanks + cell + "  ")
			} else {
				line.WriteString(cell + blanks + "  ")
			}
		}
		if _, err := io.WriteString(w, strings.TrimRight(line.String(), " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Number writes a number for people: large ones in groups of three digits, small ones with
// three significant digits.
func Number[N int | int64 | float64](n N) string {
	const exact = 1 << 53
	f := float64(n)
	switch {
	case f >= exact:
		return strconv.FormatFloat(f, 'g', 4, 64)
	case f < 100 && f != math.Trunc(f):
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(math.Trunc(f), 'f', -1, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
