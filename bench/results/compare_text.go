package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Write writes the comparison as text in columns.
func (c Comparison) Write(to io.Writer) error {
	var out strings.Builder
	for _, w := range c.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	if len(c.Warnings) > 0 {
		out.WriteByte('\n')
	}
	tests, significant := 0, 0
	for _, t := range c.Tables {
		t.write(&out)
		for _, cell := range t.Cells {
			if cell.Tested() {
				tests++
				if cell.Difference.Significant() {
					significant++
				}
			}
		}
	}
	list(&out, "only before:", c.OnlyBefore)
	list(&out, "only after:", c.OnlyAfter)
	fmt.Fprintf(&out, "%d of %d cells differ significantly (p<0.05); of as many that are alike, about %d would, by chance.\n",
		significant, tests, (tests+10)/20)
	_, err := io.WriteString(to, out.String())
	return err
}

func list(out *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(out, title)
	for _, item := range items {
		fmt.Fprintf(out, "  %s\n", item)
	}
	out.WriteByte('\n')
}

func (t ComparedTable) write(out *strings.Builder) {
	if len(t.Cells) == 0 && t.Same == 0 {
		return
	}
	fmt.Fprintln(out, t.Title)
	columns := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for i, c := range t.Cells {
		if i == 0 || c.Column.ID != t.Cells[i-1].Column.ID {
			heading := strings.TrimSpace(c.Column.Title + " " + c.Column.Unit)
			fmt.Fprintf(columns, "  %s\tbefore\tafter\tchange\n", heading)
		}
		if !c.Measured {
			fmt.Fprintf(columns, "  %s\t%s\t%s\tchanged\n", c.Row, shorter(c.Before.Label()), shorter(c.After.Label()))
			continue
		}
		said := strings.Join([]string{c.Difference.Percent(), "(" + c.Difference.test() + ")", c.Verdict()}, " ")
		if !c.Tested() {
			said = "not tested (" + c.Difference.samples() + ")"
		}
		fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\n", c.Row, c.Before.beside(), c.After.beside(), strings.TrimSpace(said))
		if mean, ok := t.mean(c.Column.ID); ok && (i == len(t.Cells)-1 || t.Cells[i+1].Column.ID != c.Column.ID) {
			fmt.Fprintf(columns, "  (geometric mean of %d)\t\t\t%s\n", mean.N, change(mean.Ratio))
		}
	}
	columns.Flush() // to a strings.Builder, which does not fail
	if t.Same > 0 {
		fmt.Fprintf(out, "  (cells that are the same in both: %d)\n", t.Same)
	}
	out.WriteByte('\n')
}

// shorter is a text of a length that leaves a table readable.
func shorter(text string) string {
	const longest = 40
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return text
}

// mean returns that of a column, if it has one.
func (t ComparedTable) mean(column string) (Mean, bool) {
	i := slices.IndexFunc(t.Means, func(m Mean) bool { return m.Column.ID == column })
	if i < 0 {
		return Mean{}, false
	}
	return t.Means[i], true
}

// beside is the median with its margin.
func (c Cell) beside() string { return strings.TrimSpace(Figure(c.Median()) + " " + c.margin()) }
