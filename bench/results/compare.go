package results

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Compare writes how the cells of two reports differ: medians with their margins, the
// change in percent where it is significant, and the geometric mean of each column.
func Compare(to io.Writer, before, after *Report) error {
	var out strings.Builder
	for _, w := range mismatches(before, after) {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	c := comparison{old: before.tables(), out: &out}
	for _, t := range after.tables() {
		c.compare(t)
	}
	for _, t := range before.tables() {
		if find(after.tables(), t.ID) == nil {
			c.missing = append(c.missing, fmt.Sprintf("only before: table %q", t.Title))
		}
	}
	for _, m := range c.missing {
		fmt.Fprintln(&out, m)
	}
	fmt.Fprintf(&out, "%d of %d cells differ significantly (p<0.05); chance alone makes about %d differ.\n", c.significant, c.tested, (c.tested+10)/20)
	_, err := io.WriteString(to, out.String())
	return err
}

// tables returns the report's tables, after one of its targets.
func (r *Report) tables() []*Table {
	targets := &Table{ID: "targets", Title: "Targets", Rows: []Row{{Name: "measured"}}}
	for _, t := range r.Targets() {
		better := More
		if t.AtMost {
			better = Less
		}
		targets.Columns = append(targets.Columns, Column{ID: t.ID, Title: t.Text, Unit: t.Unit, Better: better})
		targets.Rows[0].Cells = append(targets.Rows[0].Cells, t.Got)
	}
	all := []*Table{targets}
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			all = append(all, &r.Sections[i].Tables[k])
		}
	}
	return all
}

func find(tables []*Table, id string) *Table {
	for _, t := range tables {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// comparison gathers the text of a comparison.
type comparison struct {
	old                 []*Table
	out                 *strings.Builder
	missing             []string
	tested, significant int
}

func (c *comparison) compare(fresh *Table) {
	old := find(c.old, fresh.ID)
	if old == nil {
		c.missing = append(c.missing, fmt.Sprintf("only after: table %q", fresh.Title))
		return
	}
	c.lacks("only before", old, fresh)
	c.lacks("only after", fresh, old)
	fmt.Fprintln(c.out, fresh.Title)
	text := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	same := 0
	for i, column := range fresh.Columns {
		if old.column(column.ID) < 0 {
			continue
		}
		var ratios []float64
		heading := fmt.Sprintf("  %s\tbefore\tafter\tchange\n", strings.TrimSpace(column.Title+" "+column.Unit))
		for _, row := range fresh.Rows {
			if old.row(row.Name) < 0 {
				continue
			}
			was, is := old.Cell(row.Name, column.ID), row.Cells[i]
			d, measured := is.Against(was)
			if measured && was.constant() && is.constant() && was.Samples[0] == is.Samples[0] || !measured && was.Value() == is.Value() {
				same++
				continue
			}
			fmt.Fprint(text, heading)
			heading = ""
			if !measured {
				fmt.Fprintf(text, "  %s\t%s\t%s\tchanged\n", row.Name, shorter(was.Value()), shorter(is.Value()))
				continue
			}
			if d.Testable() {
				c.tested++
				if d.Significant() {
					c.significant++
				}
			}
			ratios = append(ratios, d.Ratio)
			fmt.Fprintf(text, "  %s\t%s\t%s\t%s\n", row.Name, figureAndMargin(was), figureAndMargin(is), d.change(column.Better))
		}
		if mean, ok := geometricMean(ratios); ok && column.Better != Neither {
			fmt.Fprintf(text, "  (geometric mean of %d)\t\t\t%s\n", len(ratios), percentChange(mean))
		}
	}
	text.Flush() // to a strings.Builder, which does not fail
	if same > 0 {
		fmt.Fprintf(c.out, "  (cells that are the same in both: %d)\n", same)
	}
	c.out.WriteByte('\n')
}

// lacks notes the rows and columns of t that other does not have.
func (c *comparison) lacks(when string, t, other *Table) {
	for _, r := range t.Rows {
		if other.row(r.Name) < 0 {
			c.missing = append(c.missing, fmt.Sprintf("%s: %q in table %q", when, r.Name, t.Title))
		}
	}
	for _, column := range t.Columns {
		if other.column(column.ID) < 0 {
			c.missing = append(c.missing, fmt.Sprintf("%s: column %q of table %q", when, column.Title, t.Title))
		}
	}
}

// change writes a difference as the change from the base: "+13.0% (p=0.002 n=8) worse",
// or "~" in place of a change that is not significant.
func (d Difference) change(better Better) string {
	n := fmt.Sprintf("n=%d", d.N1)
	if d.N1 != d.N2 {
		n = fmt.Sprintf("n=%d+%d", d.N1, d.N2)
	}
	switch {
	case !d.Testable():
		return "not tested (" + n + ")"
	case !d.Significant():
		return fmt.Sprintf("~ (p=%.3f %s)", d.P, n)
	}
	text := fmt.Sprintf("%s (p=%.3f %s)", percentChange(d.Ratio), d.P, n)
	switch {
	case better == Neither || d.Ratio == 1 || math.IsNaN(d.Ratio):
		return text
	case (d.Ratio < 1) == (better == Less):
		return text + " better"
	}
	return text + " worse"
}

func percentChange(ratio float64) string {
	if math.IsNaN(ratio) {
		return "?"
	}
	return fmt.Sprintf("%+.1f%%", 100*(ratio-1))
}

// geometricMean is that of at least two ratios, all above 0.
func geometricMean(ratios []float64) (float64, bool) {
	sum := 0.0
	for _, r := range ratios {
		if !(r > 0) {
			return 0, false
		}
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios))), len(ratios) >= 2
}

func figureAndMargin(c Cell) string {
	return strings.TrimSpace(Figure(c.Median()) + " " + Cell{Samples: c.Samples}.Margin())
}

// shorter cuts a text that would make a table unreadable.
func shorter(text string) string {
	const longest = 40
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return text
}

// mismatches lists the differences of two runs that make their figures hard to compare.
func mismatches(before, after *Report) []string {
	var all []string
	a, b := before.Machine, after.Machine
	for _, m := range []struct{ name, before, after string }{
		{"processor", a.CPU, b.CPU},
		{"number of cores", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores)},
		{"system", a.OS, b.OS},
		{"kernel", a.Kernel, b.Kernel},
		{"hypervisor", a.Virtual, b.Virtual},
		{"clock source", a.ClockSource, b.ClockSource},
		{"version of Go", a.Go, b.Go},
	} {
		if m.before != m.after {
			all = append(all, fmt.Sprintf("the %s differs: %q before, %q after", m.name, m.before, m.after))
		}
	}
	for i, r := range []*Report{before, after} {
		run := "the run " + []string{"before", "after"}[i]
		if r.Quick {
			all = append(all, run+" was a quick one")
		}
		if r.Interrupted {
			all = append(all, run+" was interrupted")
		}
	}
	return all
}
