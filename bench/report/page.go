package report

import (
	"embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
)

//go:embed report.gomd report.gotxt
var files embed.FS

var functions = map[string]any{
	"brief": brief,
	"first": first,
	"heading": func(c Column) string {
		return strings.Join(strings.Fields(c.Title+" "+c.Unit+" "+string(c.Better)), " ")
	},
	"cells": cells,
	"inc":   func(i int) int { return i + 1 },
	"note":  func(t Table, r Row) int { return slices.Index(notes(t), r.Note) + 1 },
	"notes": notes,
	"mark":  func(t Target) string { return map[State]string{Met: "✓", Missed: "✗", Open: "?"}[t.State()] },
	"md":    escaped,
	"plain": func(text string) string { return strings.ReplaceAll(text, "`", "") },
}

var (
	markdownForm = template.Must(template.New("report.gomd").Funcs(functions).ParseFS(files, "report.gomd"))
	summaryForm  = template.Must(template.New("report.gotxt").Funcs(functions).ParseFS(files, "report.gotxt"))
)

// form is what the Markdown form shows.
type form struct {
	*Report
	Whole bool // all tables and targets, with ratios and intervals, and how each section measures
}

// Markdown writes the whole report.
func (r *Report) Markdown(to io.Writer) error { return markdownForm.Execute(to, form{r, true}) }

// Brief writes what is published.
func (r *Report) Brief(to io.Writer) error { return markdownForm.Execute(to, form{r, false}) }

// Markdown writes the table.
func (t *Table) Markdown(to io.Writer) error {
	return markdownForm.ExecuteTemplate(to, "table", t)
}

// Summary writes the verdicts and targets, for a terminal.
func (r *Report) Summary(to io.Writer) error { return summaryForm.Execute(to, r) }

// published are the tables that are published, with the columns and rows; no rows are all of them.
var published = []struct {
	table         string
	columns, rows []string
}{
	{"cost", []string{"ns", "floor"}, []string{"Next", "Next, under a lease", "Stream.Next", "NextN(1024)", "NextAfter", "Sequence.Next", "publicid.Encode"}}, // peers stand in [Report.Which]
	{"ways", []string{"1", "2"}, []string{"tickflake, lease in PostgreSQL", "tickflake sequence in PostgreSQL, segmented", "tickflake sequence in PostgreSQL, ordered",
		"PostgreSQL auto-increment", "PostgreSQL row with a tickflake ID", "PostgreSQL row, tickflake_next() by default", "Redis INCR, appendfsync always", "ZooKeeper sequential node per ID"}},
	{"old-rows", []string{"sorted", "shuffled"}, nil},
	{"service-resp", []string{"1", "64"}, nil},
	{"service-batches", []string{"rate"}, nil},
	{"index-postgresql", []string{"rate", "whole"}, nil},
}

// brief returns what is published of the tables of a section.
func brief(s Section) (all []Table) {
	for _, is := range published {
		t := s.Table(is.table)
		short := Table{Title: t.Title, RowName: t.RowName, brief: true}
		for _, c := range t.Columns {
			if slices.Contains(is.columns, c.ID) {
				short.Columns = append(short.Columns, c)
			}
		}
		for _, r := range t.Rows {
			if is.rows == nil || slices.Contains(is.rows, r.Name) {
				row := Row{Name: r.Name, Note: r.Note}
				for _, c := range short.Columns {
					row.Cells = append(row.Cells, t.Cell(r.Name, c.ID))
				}
				short.Rows = append(short.Rows, row)
			}
		}
		if len(short.Rows) > 0 {
			all = append(all, short)
		}
	}
	return all
}

// Said is the verdicts of the tables. A section that the machine disturbed compares nothing.
func (s Section) Said() string {
	var said []string
	for _, t := range s.Tables {
		if t.Verdict != "" {
			said = append(said, t.Verdict)
		}
	}
	if len(said) > 0 && s.Unusable() != "" {
		return "The machine was disturbed, so these figures compare nothing."
	}
	return strings.Join(said, " ")
}

// Title names the library, the machine and the one answer.
func (r *Report) Title() string {
	said := fmt.Sprintf("tickflake on %s of %s", Count(r.Cores, "core"), r.CPU)
	cost := r.Section("cost").Table("cost")
	if ns, floor := cost.Cell("Next", "ns"), cost.Cell("Next", "floor"); len(ns.Samples) > 0 && len(floor.Samples) > 0 {
		said += fmt.Sprintf(": %s ns per ID, %s × a clock read and a compare-and-swap", ns, floor)
	}
	return said
}

// Tally says how many targets are met.
func (r *Report) Tally() string {
	count := map[State]int{}
	for _, t := range r.Targets() {
		count[t.State()]++
	}
	return fmt.Sprintf("%d met, %d missed, %d open", count[Met], count[Missed], count[Open])
}

// Notices are warnings about the run, to be read before the figures.
func (r *Report) Notices() []string {
	var all []string
	for _, s := range r.Sections {
		if why := s.Unusable(); why != "" {
			all = append(all, fmt.Sprintf("The section “%s” is unusable: %s; measure again on a machine that has the processors to itself.", s.Title, why))
		}
	}
	if r.Interrupted {
		all = append(all, "The run was interrupted: cells or sections are missing.")
	}
	if r.Quick {
		all = append(all, "This was a quick run with few rounds: the figures are rough, and docs/results.md has those of the published run.")
	}
	return all
}

// Reading explains the tables.
func (*Report) Reading() string {
	return "A case and what it is compared with are measured one after the other in each round, and their order is swapped from round to round; the ratio of such a pair is the median of the rounds' ratios. " +
		fmt.Sprintf("A target needs %d rounds. ", Enough) +
		"A figure is the median of all rounds, with the digits that its 95% interval leaves, and ± that interval (the whole range of fewer than six rounds). A ratio to the base row is shown if it is significant (p < 0.05, Mann-Whitney U test); ~ means that the rounds show no difference. " +
		"↓ less is better, ↑ more is better, – not measured."
}

// cells are those of a row: the figure and, unless the table is brief, its interval and its ratio to the base row.
func cells(t Table, row Row) (all []string) {
	for i, c := range row.Cells {
		text := []string{escaped(c.String())}
		if !t.brief {
			text = append(text, c.margin())
		}
		if t.Base != "" && t.Base != row.Name && c.Text == "" {
			switch d := c.Against(t.Cell(t.Base, t.Columns[i].ID)); {
			case math.IsNaN(d.Ratio) || d.P == 1:
			case d.Significant():
				text = append(text, "("+d.Value()+")")
			default:
				text = append(text, "(~)")
			}
		}
		all = append(all, strings.TrimSpace(strings.Join(text, " ")))
	}
	return all
}

// notes are the notes of a table's rows, each once.
func notes(t Table) []string {
	var all []string
	for _, r := range t.Rows {
		if r.Note != "" && !slices.Contains(all, r.Note) {
			all = append(all, r.Note)
		}
	}
	return all
}

// first is the first sentence of a text.
func first(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".") + "."
}

// special escapes the characters that Markdown, or HTML in it, gives a meaning.
var special = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", "~", `\~`, "\n", " ")

// escaped is a text in Markdown. Code in backquotes stays as it is, but for bars, which
// would end the cell of a table.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := range parts {
		if i%2 == 0 || i == len(parts)-1 {
			parts[i] = special.Replace(parts[i])
		} else {
			parts[i] = strings.ReplaceAll(parts[i], "|", `\|`)
		}
	}
	return strings.Join(parts, "`")
}
