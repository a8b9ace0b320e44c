// Package page renders a report: as a page of HTML that needs no other file, as Markdown
// with charts in files of their own, and as a summary for a terminal. All three are
// templates over [results.Report].
package page

import (
	"embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

//go:embed report.gohtml report.gomd report.gotxt style.css
var files embed.FS

var functions = map[string]any{
	"chart": func(t results.Table, c results.Chart) (htmltemplate.HTML, error) {
		svg, err := drawChart(&t, c)
		return htmltemplate.HTML(inline(svg)), err
	},
	"drawn": func(t results.Table, c results.Chart) bool { return len(t.Drawn(c)) > 0 },
	"css": func() (htmltemplate.CSS, error) {
		style, err := files.ReadFile("style.css")
		return htmltemplate.CSS(":root {\n" + properties() + "}\n" + string(style)), err
	},
	"heading": heading,
	"cells":   cells,
	"note":    note,
	"notes":   notes,
	"mark":    mark,
	"reason":  reason,
	"md":      escaped,
	"inc":     func(i int) int { return i + 1 },
	"plain":   func(text string) string { return strings.ReplaceAll(text, "`", "") },
}

var (
	pageForm     = htmltemplate.Must(htmltemplate.New("report.gohtml").Funcs(functions).ParseFS(files, "report.gohtml"))
	markdownForm = template.Must(template.New("report.gomd").Funcs(functions).ParseFS(files, "report.gomd"))
	summaryForm  = template.Must(template.New("report.gotxt").Funcs(functions).ParseFS(files, "report.gotxt"))
)

// HTML writes the report as one page that needs no other file and no network.
func HTML(to io.Writer, r *results.Report) error { return pageForm.Execute(to, view{r, ""}) }

// Markdown writes the report as Markdown, which refers to the drawings of [Charts] in the
// folder.
func Markdown(to io.Writer, r *results.Report, folder string) error {
	return markdownForm.Execute(to, view{r, folder})
}

// Summary writes the targets and verdicts, for a terminal.
func Summary(to io.Writer, r *results.Report) error { return summaryForm.Execute(to, view{r, ""}) }

// Charts returns the drawings of the report by their file names. There is none of a chart
// for which nothing was measured.
func Charts(r *results.Report) (map[string]string, error) {
	all := map[string]string{}
	tables := []results.Table{view{r, ""}.Opening()}
	for _, s := range r.Sections {
		tables = append(tables, s.Tables...)
	}
	for _, t := range tables {
		for _, c := range t.Charts {
			svg, err := drawChart(&t, c)
			if err != nil {
				return nil, err
			}
			if svg != "" {
				all[c.ID+".svg"] = svg
			}
		}
	}
	return all, nil
}

// view is a report as the templates see it.
type view struct {
	*results.Report
	Folder string // of the drawings
}

// Headline says how many targets are met, or that the run decides none.
func (v view) Headline() string {
	if v.Unusable() != "" {
		return "UNUSABLE: this run decides no target"
	}
	count := map[results.State]int{}
	for _, t := range v.Targets() {
		count[t.State()]++
	}
	all := len(v.Targets())
	said := fmt.Sprintf("%d of %s met", count[results.Met], results.Count(all, "target"))
	if all == 0 {
		return "This run has no targets"
	}
	if n := count[results.Missed]; n > 0 {
		said += fmt.Sprintf(", %d missed", n)
	}
	if n := count[results.Open]; n > 0 {
		said += fmt.Sprintf(", %d open", n)
	}
	return said
}

// Shares of the machine that other programs had, above which a report warns.
const (
	warnStolen = 1.0 // percent of the processors' time
	warnLoad   = 0.5 // load per core, before the run
)

// Notices are warnings about the run, to be read before the figures.
func (v view) Notices() []string {
	var all []string
	if why := v.Unusable(); why != "" {
		all = append(all, "This run is unusable: "+why+". No target is met or missed by it; measure again on a machine that has the processors to itself.")
	}
	for _, s := range v.Sections {
		if why := s.Unusable(); why != "" {
			all = append(all, fmt.Sprintf("The section “%s” is unusable: %s.", s.Title, why))
		}
	}
	if v.Interrupted {
		all = append(all, "The run was interrupted: cells or sections are missing.")
	}
	if v.Quick {
		all = append(all, "This was a quick run with few rounds: the figures are rough.")
	}
	if m := v.Machine; m.LoadBefore > warnLoad*float64(m.Cores) {
		all = append(all, fmt.Sprintf("The machine was busy before the run: a load of %.2f on %s.", m.LoadBefore, results.Count(m.Cores, "core")))
	}
	if stolen := v.Machine.Stolen; stolen > warnStolen && v.Unusable() == "" {
		all = append(all, fmt.Sprintf("The hypervisor took %.1f%% of the processors' time during the run.", stolen))
	}
	return all
}

// Facts are lines about the machine and the run, as far as they are known.
func (v view) Facts() [][2]string {
	m, noise := v.Machine, v.Noise()
	system := m.OS
	if m.Kernel != "" {
		system += ", kernel " + m.Kernel
	}
	if m.Virtual != "" {
		system += ", under " + m.Virtual
	}
	machine := fmt.Sprintf("%s, %s", m.CPU, results.Count(m.Cores, "core"))
	if m.MemoryBytes > 0 {
		machine += fmt.Sprintf(", %.1f GiB", float64(m.MemoryBytes)/(1<<30))
	}
	all := [][2]string{
		{"Commit", v.Commit},
		{"Run", fmt.Sprintf("%s, %s, by `%s`", v.Began.UTC().Format("2006-01-02 15:04 UTC"), time.Duration(v.Seconds*float64(time.Second)).Round(time.Second), v.Command)},
		{"Machine", machine},
		{"System", system},
		{"Clock source", m.ClockSource},
		{"Go", m.Go},
		{"Stolen", fmt.Sprintf("%.1f%% of the processors' time, by the hypervisor", m.Stolen)},
	}
	if noise.Cells > 0 {
		all = append(all, [2]string{"Noise", fmt.Sprintf("half of the figures within ±%s, nine in ten within ±%s", results.Percent(noise.Typical), results.Percent(noise.Most))})
	}
	return slices.DeleteFunc(all, func(f [2]string) bool { return f[1] == "" })
}

// Reading explains the tables.
func (view) Reading() string {
	return measure.Rule + " A figure is the median of all rounds, with the digits that its 95% interval leaves. A ratio to the base row is shown if it is significant (p < 0.05, Mann-Whitney U test); ~ means that the rounds show no difference. " +
		"↓ less is better, ↑ more is better, – not measured."
}

// heading is a column's title with its unit and direction.
func heading(c results.Column) string {
	arrow := map[results.Better]string{results.Less: "↓", results.More: "↑"}[c.Better]
	return strings.Join(strings.Fields(c.Title+" "+c.Unit+" "+arrow), " ")
}

// shown is a cell as a table shows it.
type shown struct {
	results.Cell
	Value, Margin string
	Ratio         string // to the base row
}

// cells are those of a row.
func cells(t results.Table, row results.Row) []shown {
	var all []shown
	for i, c := range row.Cells {
		s := shown{Cell: c, Value: c.Value(), Margin: c.Margin()}
		if t.Base != "" && t.Base != row.Name && c.Text == "" {
			d, ok := c.Against(t.Cell(t.Base, t.Columns[i].ID))
			switch {
			case !ok || !d.Testable() || math.IsNaN(d.Ratio) || d.P == 1:
			case d.Significant():
				s.Ratio = results.Times(d.Ratio)
			default:
				s.Ratio = "~"
			}
		}
		all = append(all, s)
	}
	return all
}

// notes are the notes of a table's rows, each once.
func notes(t results.Table) []string {
	var all []string
	for _, r := range t.Rows {
		if r.Note != "" && !slices.Contains(all, r.Note) {
			all = append(all, r.Note)
		}
	}
	return all
}

// note is the number of a row's note, or 0.
func note(t results.Table, r results.Row) int { return slices.Index(notes(t), r.Note) + 1 }

// mark is the sign of a target's state.
func mark(t results.Target) string {
	return map[results.State]string{results.Met: "✓", results.Missed: "✗", results.Open: "?"}[t.State()]
}

// reason says why a target was missed or is open.
func reason(t results.Target) string {
	switch {
	case t.State() == results.Missed:
		return t.Why
	case t.State() == results.Open && t.Open == "":
		return "not measured"
	}
	return t.Open
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
