package page

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/chart"
)

// Chart is a chart in a file.
type Chart struct {
	Name string // of the file
	SVG  string
}

// Charts draws the charts of the report, each as a file of its own. One for which
// nothing was measured has none.
func Charts(r *results.Report) ([]Chart, error) {
	var all []Chart
	for _, s := range r.Sections {
		for _, c := range s.Charts {
			svg, err := chart.Chart{Chart: c, Table: s.Table(c.Table)}.Alone()
			if errors.Is(err, chart.ErrEmpty) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, Chart{c.ID + ".svg", svg})
		}
	}
	return all, nil
}

// Markdown writes the report as Markdown that shows the charts of [Charts] from the
// folder, as seen from where the text is.
func Markdown(to io.Writer, r *results.Report, folder string) error {
	drawn, err := Charts(r)
	if err != nil {
		return err
	}
	files := map[string]bool{}
	for _, c := range drawn {
		files[c.Name] = true
	}
	m := &markdown{report: r}
	m.line("# tickflake: benchmark report\n")
	m.line("**%s**\n", headline(r))
	for _, n := range notices(r) {
		m.line("> %s\n", escaped(n))
	}
	m.line("%s\n", generated)
	m.targets("")
	m.line("## Where it ran\n")
	for _, f := range facts(r) {
		m.line("- %s: %s", f.Name, escaped(f.Value))
	}
	m.line("\n%s\n", reading)
	for _, s := range r.Sections {
		m.section(s, folder, files)
	}
	_, err = io.WriteString(to, strings.TrimRight(m.String(), "\n")+"\n")
	return err
}

// generated tells editors of the text that it is not theirs.
const generated = "<!-- Written by go run ./bench. Edits are lost. -->"

// markdown is a text in the making.
type markdown struct {
	strings.Builder
	report *results.Report
}

func (m *markdown) line(format string, values ...any) { fmt.Fprintf(m, format+"\n", values...) }

// targets writes the table of targets, with links to the sections of a file, or of this
// one.
func (m *markdown) targets(file string) {
	all := goals(m.report)
	if len(all) == 0 {
		return
	}
	m.line("| target | wanted | measured | |")
	m.line("|---|---:|---:|---|")
	for _, g := range all {
		measured := strings.TrimSpace(g.Value() + " " + g.Got.Margin())
		result := strings.TrimSpace(g.Mark().Sign() + " " + string(g.State()))
		if why := g.Reason(); why != "" {
			result += ": " + why
		}
		m.line("| [%s](%s#%s) | %s | %s | %s |", escaped(g.Text), file, g.Section, escaped(g.Limit()), escaped(measured), escaped(result))
	}
	m.line("")
}

func (m *markdown) section(s results.Section, folder string, files map[string]bool) {
	m.line("<a id=\"%s\"></a>\n\n## %s\n", s.ID, escaped(s.Title))
	if s.Skipped != "" {
		m.line("> Skipped: %s\n", escaped(s.Skipped))
	}
	for _, v := range s.Verdict {
		m.line("**%s**\n", escaped(v))
	}
	if s.About != "" {
		m.line("%s\n", escaped(s.About))
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		for _, c := range s.ChartsOf(t.ID) {
			m.line("<a id=\"chart-%s\"></a>\n\n### %s\n", c.ID, escaped(c.Title))
			if files[c.ID+".svg"] {
				m.line("![%s](%s/%s.svg)\n", escaped(c.Title), folder, c.ID)
			} else {
				m.line("%s.\n", chart.ErrEmpty)
			}
		}
		m.table(t)
		m.line("This section alone: `%s`\n", command(m.report, s))
	}
	for _, n := range s.Notes {
		m.line("- %s", escaped(n))
	}
	if len(s.Notes) > 0 {
		m.line("")
	}
	if len(s.Tables) == 0 {
		m.line("This section alone: `%s`\n", command(m.report, s))
	}
}

func (m *markdown) table(t *results.Table) {
	title := "**" + escaped(t.Title) + "**"
	if said := remark(t); said != "" {
		title += " (" + escaped(said) + ")"
	}
	m.line("<a id=\"table-%s\"></a>\n\n%s\n", t.ID, title)
	head, rule := "| "+escaped(t.RowName)+" |", "|---|"
	for i, c := range heads(t) {
		head += " " + strings.Join(nonEmpty(escaped(c.Title), escaped(c.Unit), arrow(c.Better)), " ") + " |"
		if texts(t, i) {
			rule += "---|"
		} else {
			rule += "---:|"
		}
	}
	m.line("%s\n%s", head, rule)
	notes, of := footnotes(t)
	for i, row := range t.Rows {
		line := "| " + escaped(row.Name)
		if of[i] > 0 {
			line += fmt.Sprintf(" <sup>%d</sup>", of[i])
		}
		for k := range t.Columns {
			c := show(t, i, k)
			line += " | " + escaped(strings.Join(nonEmpty(c.Label, c.Margin, c.Ratio), " "))
		}
		m.line("%s |", line)
	}
	m.line("")
	for i, n := range notes {
		m.line("%d. %s", i+1, escaped(n))
	}
	if len(notes) > 0 {
		m.line("")
	}
}

// special are the characters that Markdown, or HTML in it, would take for its own.
// Backquotes are not among them: what stands in them is code.
var special = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", "~", `\~`, "\n", " ", "\r", "")

// inCode are those that must be escaped in code too, if it may stand in a table.
var inCode = strings.NewReplacer("|", `\|`, "\n", " ", "\r", "")

// escaped is a text in Markdown.
func escaped(text string) string {
	var out strings.Builder
	for text != "" {
		at := quoted.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		out.WriteString(special.Replace(text[:at[0]]))
		out.WriteString(inCode.Replace(text[at[0]:at[1]]))
		text = text[at[1]:]
	}
	return out.String()
}
