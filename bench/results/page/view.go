// Package page writes a report for people: as a page of HTML that needs nothing
// besides itself, as Markdown with charts in files, and as the part of it that stands
// in the README.
package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// fact is one line about the run.
type fact struct{ Name, Value string }

// facts are those of the machine and the run, as far as they are known.
func facts(r *results.Report) []fact {
	m := r.Machine
	all := []fact{
		{"Processor", fmt.Sprintf("%s, %s used", m.CPU, count(m.Cores, "core"))},
		{"Memory", memory(m.MemoryBytes)},
		{"System", strings.Join(nonEmpty(m.OS, prefixed("kernel ", m.Kernel), prefixed("under ", m.Virtual)), ", ")},
		{"Go", m.Go},
		{"Clock source", m.ClockSource},
		{"Noise", noise(r)},
		{"Load before", fmt.Sprintf("%.2f, %.2f, %.2f (over 1, 5 and 15 minutes)", m.LoadBefore[0], m.LoadBefore[1], m.LoadBefore[2])},
		{"Steal", fmt.Sprintf("%.1f%% of the processors' time, by the hypervisor, during the run", m.Steal)},
		{"Run", fmt.Sprintf("%s, took %s", r.Began.UTC().Format("2006-01-02 15:04 UTC"), duration(r.Seconds))},
		{"Again", "`" + r.Command + "`"},
	}
	known := all[:0]
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

func noise(r *results.Report) string {
	n := r.Noise()
	if n.Cells == 0 {
		return "unknown: nothing was measured more than once"
	}
	return fmt.Sprintf("±%s over repeats in half of %s, at most ±%s in nine of ten",
		results.Percent(n.Typical), count(n.Cells, "timed cell"), results.Percent(n.Most))
}

func memory(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func duration(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func nonEmpty(texts ...string) []string {
	var left []string
	for _, t := range texts {
		if t != "" {
			left = append(left, t)
		}
	}
	return left
}

// count is so many things: "1 core", "2 cores".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%s %ss", results.Figure(float64(n)), thing)
}

// headline is what the targets come to.
func headline(r *results.Report) string {
	all, met, missed, open := len(r.Targets()), r.Count(results.Met), r.Count(results.Missed), r.Count(results.Open)
	switch {
	case all == 0:
		return "No targets were in this run."
	case met == all:
		return fmt.Sprintf("All %s met.", count(all, "target"))
	}
	said := fmt.Sprintf("%d of %s met", met, count(all, "target"))
	if missed > 0 {
		said += fmt.Sprintf(", %d missed", missed)
	}
	if open > 0 {
		said += fmt.Sprintf(", %d open", open)
	}
	return said + "."
}

// Shares above which the report warns that the machine had something else to do.
const (
	warnSteal = 1.0 // percent
	warnLoad  = 0.5 // per core
)

// skippedNotice begins the notices of sections that were skipped.
const skippedNotice = "Skipped: "

// notices say what the reader has to know before the figures.
func notices(r *results.Report) []string {
	var all []string
	if r.Interrupted {
		all = append(all, "The run was interrupted: cells, or whole sections, are missing.")
	}
	if r.Quick {
		all = append(all, "This was a quick run, with few repeats: it shows how the report looks, and its figures are rough.")
	}
	for _, s := range r.Sections {
		if s.Skipped != "" {
			all = append(all, skippedNotice+s.Title+": "+s.Skipped)
		}
	}
	if m := r.Machine; m.LoadBefore[0] > warnLoad*float64(m.Cores) {
		all = append(all, fmt.Sprintf("The machine was busy before the run: a load of %.2f on %s.", m.LoadBefore[0], count(m.Cores, "core")))
	}
	if r.Machine.Steal > warnSteal {
		all = append(all, fmt.Sprintf("The hypervisor took %.1f%% of the processors' time during the run.", r.Machine.Steal))
	}
	return all
}

// goal is a target as it is shown.
type goal struct {
	results.Target
	Section string // its ID
}

// goals are the targets with their sections.
func goals(r *results.Report) []goal {
	var all []goal
	for _, s := range r.Sections {
		for _, t := range s.Targets {
			all = append(all, goal{t, s.ID})
		}
	}
	return all
}

// Mark is how the state is to be read.
func (g goal) Mark() results.Mark {
	switch g.State() {
	case results.Met:
		return results.Good
	case results.Missed:
		return results.Bad
	}
	return results.NoMark
}

// shown is a cell as it is shown in a table.
type shown struct {
	Label, Margin, Ratio string
	Compared             bool // the column has ratios
	Mark                 results.Mark
	Text                 bool // in a column of texts, rather than of figures
	Said                 bool // a text in a column of figures
}

// show puts a cell beside that of the base row, if there is one.
func show(t *results.Table, row, column int) shown {
	cell := t.Rows[row].Cells[column]
	s := shown{Label: cell.Label(), Margin: cell.Margin(), Mark: cell.Mark, Text: texts(t, column)}
	s.Said = cell.Text != "" && !s.Text
	s.Compared = t.Base != "" && !s.Text
	if s.Compared && t.Base != t.Rows[row].Name && cell.Text == "" {
		base := t.Row(t.Base).Cells[column]
		// Of counts that are all the same, there is no more to say.
		same := s.Margin == "" && base.Margin() == "" && cell.Median() == base.Median()
		// Of nothing, nothing is a multiple; and of one sample, nobody can tell.
		if d, ok := cell.Against(base); ok && !same && !math.IsNaN(d.Ratio) && min(d.N1, d.N2) > 1 {
			s.Ratio = d.String()
		}
	}
	return s
}

// texts says that a column has no figures.
func texts(t *results.Table, column int) bool {
	return !slices.ContainsFunc(t.Rows, func(r results.Row) bool { return len(r.Cells[column].Samples) > 0 })
}

// common is what all columns of a table have in common, so that it need not be said
// for each: the unit, and which way they should go.
type common struct {
	Unit   string
	Better results.Better
}

// inCommon returns what the columns have in common, if there are several.
func inCommon(t *results.Table) common {
	if len(t.Columns) < 2 {
		return common{}
	}
	first := t.Columns[0]
	c := common{first.Unit, first.Better}
	for _, column := range t.Columns {
		if column.Unit != c.Unit {
			c.Unit = ""
		}
		if column.Better != c.Better {
			c.Better = results.Neither
		}
	}
	return c
}

// footnotes are the notes of the rows, each once, and which one each row has, counted
// from 1, or 0.
func footnotes(t *results.Table) (notes []string, of []int) {
	for _, r := range t.Rows {
		n := 0
		if r.Note != "" {
			if n = slices.Index(notes, r.Note) + 1; n == 0 {
				notes = append(notes, r.Note)
				n = len(notes)
			}
		}
		of = append(of, n)
	}
	return notes, of
}

// hint says which way a column should go.
func hint(b results.Better) string {
	switch b {
	case results.Less:
		return "less is better"
	case results.More:
		return "more is better"
	}
	return ""
}

// remark says beside a table's title what holds for all of it.
func remark(t *results.Table) string {
	c := inCommon(t)
	said := nonEmpty(prefixed("in ", c.Unit), hint(c.Better))
	if t.Base != "" {
		said = append(said, "× is the ratio to "+t.Base)
	}
	return strings.Join(said, "; ")
}

// heads are the columns with what is not said of all of them.
func heads(t *results.Table) []results.Column {
	c, columns := inCommon(t), slices.Clone(t.Columns)
	for i := range columns {
		if c.Unit != "" {
			columns[i].Unit = ""
		}
		if c.Better != results.Neither {
			columns[i].Better = results.Neither
		}
	}
	return columns
}

// reading explains the tables.
const reading = "A figure is the median of the repeats; ± is how far the 95% interval of the median goes to its wider side " +
	"(the whole range, where there are fewer than six repeats). A ratio stands there only if chance alone would make such a difference " +
	"in fewer than one of 20 cases (p < 0.05, Mann-Whitney U test, n repeats); otherwise there is a ~, which does not say that the two are alike, " +
	"and with it “too few” where so few repeats could not show any difference. " +
	"↓ marks columns where less is better, ↑ those where more is. – means that nothing was measured."

// command is the one that runs a section alone.
func command(r *results.Report, s results.Section) string { return cmp.Or(s.Command, r.Command) }
