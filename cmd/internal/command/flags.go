package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// short are the flags that have a letter, too, the one that other programs give them.
var short = map[string]string{"format": "o", "count": "n"}

// Flag adds a flag, whose text parse turns into *value. The usage has the default, if the help is to
// show it, and in backquotes the name of the value.
func Flag[T any](cmd *cobra.Command, name, usage string, value *T, parse func(string) (T, error)) *pflag.Flag {
	flag := cmd.Flags().VarPF(&parsed[T]{value: value, parse: parse}, name, short[name], usage)
	flag.DefValue = "" // so that the help does not add it
	return flag
}

// parsed is the value of a flag of [Flag].
type parsed[T any] struct {
	value *T
	parse func(string) (T, error)
	text  string // that was parsed
}

func (p *parsed[T]) Set(text string) error {
	value, err := p.parse(text)
	if err == nil {
		*p.value, p.text = value, text
	}
	return err
}

func (p *parsed[T]) String() string { return cmp.Or(p.text, fmt.Sprint(*p.value)) }

func (p *parsed[T]) Type() string { return fmt.Sprintf("%T", *p.value) }

// ChoiceFlag adds a flag that takes one of some words, which the shell completes. The first is the default.
func ChoiceFlag(cmd *cobra.Command, name, usage string, choices ...string) *string {
	value := choices[0]
	list := strings.Join(choices[:len(choices)-1], ", ") + " or " + choices[len(choices)-1]
	Flag(cmd, name, fmt.Sprintf("%s: %s (default %q)", usage, list, value), &value, func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("want %s, got %q", list, s)
		}
		return s, nil
	})
	// It fails for a flag that does not exist, and for one completed twice.
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	return &value
}

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
