package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The values of a flag --format: for people, or one JSON object per line.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// FormatFlag adds the --format of commands that print either text or JSON.
func FormatFlag(cmd *cobra.Command) *string {
	return ChoiceFlag(cmd, "format", "output `FORMAT`", FormatText, FormatJSON)
}

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
// line. The last cell of a row has any length.
func Table(w io.Writer, header []string, rows [][]string) error {
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
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
