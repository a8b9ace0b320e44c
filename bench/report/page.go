package report

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
)

//go:embed report.gohtml report.gomd report.gotxt style.css
var files embed.FS

// style is the style sheet; its first rule has the colours of the charts.
var style = func() string {
	text, _ := files.ReadFile("style.css") // it is embedded
	return string(text)
}()

var functions = map[string]any{
	"chart":   func(t Table, c Chart) htmltemplate.HTML { return htmltemplate.HTML(t.chart(c)) },
	"drawn":   func(t Table, c Chart) bool { return len(t.drawn(c)) > 0 },
	"css":     func() htmltemplate.CSS { return htmltemplate.CSS(style) },
	"heading": heading,
	"cells":   cells,
	"note":    func(t Table, r Row) int { return slices.Index(notes(t), r.Note) + 1 },
	"notes":   notes,
	"mark":    func(t Target) string { return map[State]string{Met: "✓", Missed: "✗", Open: "?"}[t.State()] },
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
func (r *Report) HTML(to io.Writer) error { return pageForm.Execute(to, view{r, ""}) }

// Markdown writes the report as Markdown, which refers to the drawings of [Report.Charts] in the
// folder.
func (r *Report) Markdown(to io.Writer, folder string) error {
	return markdownForm.Execute(to, view{r, folder})
}

// Summary writes the targets and verdicts, for a terminal.
func (r *Report) Summary(to io.Writer) error { return summaryForm.Execute(to, view{r, ""}) }

// Charts returns the drawings of the report by their file names.
func (r *Report) Charts() map[string]string {
	colours, _, _ := strings.Cut(style, "}\n")
	all := map[string]string{}
	draw := func(t Table) {
		for _, c := range t.Charts {
			if svg := t.chart(c); svg != "" {
				begin := strings.Index(svg, ">") + 1
				all[c.ID+".svg"] = svg[:begin] + "<style>" + colours + `}</style><rect width="100%" height="100%" style="fill:var(--paper)"/>` + svg[begin:]
			}
		}
	}
	draw(view{r, ""}.Opening())
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			draw(t)
		}
	}
	return all
}

// view is a report as the templates see it.
type view struct {
	*Report
	Folder string // of the drawings
}

// Asked is what the report wants to know.
func (view) Asked() string {
	return "What does a unique 64-bit ID cost, and how near is that to the least that it can cost, the floor? How fast is it with many callers, over a network, and at the limit of its format? " +
		"Which IDs come twice when clocks step, processes restart and machines are copied? Other generators answer the same questions beside tickflake."
}

// answering are the sections whose verdicts answer that, in the order of the report.
var answering = []string{"cost", "ceiling", "latency", "kernel", "service"}

// Answers are the sections whose verdicts open the report. A run that is unusable has none.
func (v view) Answers() []Section {
	return slices.DeleteFunc(slices.Clone(v.Sections), func(s Section) bool {
		return v.Unusable() != "" || s.Verdict == "" || s.Unusable() != "" || !slices.Contains(answering, s.ID)
	})
}

// openingID names the chart that opens the report.
const openingID = "answer"

// Opening is the table of the chart that opens the report: how far Next, its variants and the
// peers are from the floor. Peers at the ceiling of their format, which shows in place of
// their cost, are left out. It has no rows if nothing of it was measured.
func (v view) Opening() Table {
	t := Table{ID: openingID, Title: "Cost of one ID"}
	cost := v.Section("cost").Table("cost")
	column, label := "floor", "× the floor"
	if len(cost.Cell("Next", column).Samples) == 0 {
		column, label = "ns", "ns per ID" // no round of the pairs counts
	}
	t.Columns = []Column{{ID: column, Title: label}}
	t.Charts = []Chart{{ID: openingID, Title: "Time per ID, one goroutine: × a clock read and a compare-and-swap", YLabel: label}}
	for _, r := range cost.Rows {
		shown := r.Group == Peers && !strings.HasPrefix(r.Note, "at the ceiling") ||
			slices.Contains([]string{"Next", "Next, under a lease", "Stream.Next"}, r.Name)
		if c := cost.Cell(r.Name, column); shown && len(c.Samples) > 0 {
			t.Rows = append(t.Rows, Row{Name: r.Name, Group: r.Group, Cells: []Cell{c}})
		}
	}
	return t
}

// Headline says how many targets are met, or that the run decides none.
func (v view) Headline() string {
	if v.Unusable() != "" {
		return "UNUSABLE: this run decides no target"
	}
	count := map[State]int{}
	for _, t := range v.Targets() {
		count[t.State()]++
	}
	all := len(v.Targets())
	said := fmt.Sprintf("%d of %s met", count[Met], Count(all, "target"))
	if all == 0 {
		return "This run has no targets"
	}
	if n := count[Missed]; n > 0 {
		said += fmt.Sprintf(", %d missed", n)
	}
	if n := count[Open]; n > 0 {
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
		all = append(all, fmt.Sprintf("The machine was busy before the run: a load of %.2f on %s.", m.LoadBefore, Count(m.Cores, "core")))
	}
	if stolen := v.Machine.Stolen; stolen > warnStolen && v.Unusable() == "" {
		all = append(all, fmt.Sprintf("The hypervisor took %.1f%% of the processors' time during the run.", stolen))
	}
	return all
}

// Facts are lines about the machine and the run, as far as they are known.
func (v view) Facts() [][2]string {
	m := v.Machine
	system := m.OS
	if m.Kernel != "" {
		system += ", kernel " + m.Kernel
	}
	if m.Virtual != "" {
		system += ", under " + m.Virtual
	}
	machine := fmt.Sprintf("%s, %s", m.CPU, Count(m.Cores, "core"))
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
	if typical, most, cells := v.Noise(); cells > 0 {
		all = append(all, [2]string{"Noise", fmt.Sprintf("half of the figures within ±%s, nine in ten within ±%s", Percent(typical), Percent(most))})
	}
	return slices.DeleteFunc(all, func(f [2]string) bool { return f[1] == "" })
}

// AllowedDelay is the share of a batch's time for which the threads of the process together may
// wait for a processor.
const AllowedDelay = 0.10

// Rule is the rule by which rounds of a pair count. Package measure keeps it.
var Rule = fmt.Sprintf("A case and what it is compared with are measured one after the other in each round, and their order is swapped from round to round. "+
	"A round of such a pair counts if the hypervisor took no processor time during its two batches, and if this process waited for a processor, with all its threads together, for at most %s of the time of each. "+
	"The ratio of a pair is the median of its ratios in the rounds that count, with their quartiles. It decides a target if at least %d rounds count, and half of all.",
	Percent(AllowedDelay), Enough)

// Reading explains the tables.
func (view) Reading() string {
	return Rule + " A figure is the median of all rounds, with the digits that its 95% interval leaves. A ratio to the base row is shown if it is significant (p < 0.05, Mann-Whitney U test); ~ means that the rounds show no difference. " +
		"↓ less is better, ↑ more is better, – not measured."
}

// heading is a column's title with its unit and direction.
func heading(c Column) string {
	arrow := map[Better]string{Less: "↓", More: "↑"}[c.Better]
	return strings.Join(strings.Fields(c.Title+" "+c.Unit+" "+arrow), " ")
}

// shown is a cell as a table shows it.
type shown struct {
	Cell
	Value, Margin string
	Ratio         string // to the base row
}

// cells are those of a row.
func cells(t Table, row Row) []shown {
	var all []shown
	for i, c := range row.Cells {
		s := shown{Cell: c, Value: c.Value(), Margin: c.Margin()}
		if t.Base != "" && t.Base != row.Name && c.Text == "" {
			d, ok := c.Against(t.Cell(t.Base, t.Columns[i].ID))
			switch {
			case !ok || !d.Testable || math.IsNaN(d.Ratio) || d.P == 1:
			case d.Significant:
				s.Ratio = Times(d.Ratio)
			default:
				s.Ratio = "~"
			}
		}
		all = append(all, s)
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

// reason says why a target was missed or is open.
func reason(t Target) string {
	switch {
	case t.State() == Missed:
		return t.Why
	case t.State() == Open && t.Open == "":
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
