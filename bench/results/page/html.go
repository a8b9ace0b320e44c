package page

import (
	_ "embed"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/chart"
)

var (
	//go:embed report.gohtml
	reportText string
	//go:embed style.css
	styleText string
	//go:embed theme.js
	themeText string
)

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"prose":     prose,
	"hint":      hint,
	"arrow":     arrow,
	"remark":    remark,
	"heads":     heads,
	"texts":     texts,
	"breakable": breakable,
	"cell":      show,
	"inSection": func(s tableSection, t results.Table) (tableView, error) { return s.table(t) },
	"commandOf": func(s tableSection) string { return command(s.report, s.Section) },
}).Parse(reportText))

// HTML writes the report as one page that needs no other file and no network.
func HTML(to io.Writer, r *results.Report) error {
	view := struct {
		Properties, Style template.CSS
		Script            template.JS
		Headline, Reading string
		Notices           []string
		Goals             []goal
		Facts             []fact
		Sections          []tableSection
	}{
		template.CSS(chart.Properties()), template.CSS(styleText + groupStyle()), template.JS(themeText),
		headline(r), reading, notices(r), goals(r), facts(r), nil,
	}
	for _, s := range r.Sections {
		view.Sections = append(view.Sections, tableSection{s, r})
	}
	return reportPage.Execute(to, view)
}

// groupStyle gives the groups' signs in tables the colours that they have in charts.
func groupStyle() string {
	var css strings.Builder
	for _, g := range []results.Group{results.Ours, results.Peers, results.Floor} {
		fmt.Fprintf(&css, ".group.%s { --group: var(%s); }\n", g, chart.GroupColour(g))
	}
	return css.String()
}

// tableSection is a section that knows its report.
type tableSection struct {
	results.Section
	report *results.Report
}

// tableView is a table with its charts and the command that makes them.
type tableView struct {
	Table   *results.Table
	Charts  []chartView
	Class   string // says how much room there is
	Folded  bool
	Notes   []string
	NoteOf  []int
	Command string
}

// chartView is a chart as it was drawn, or why there is nothing to see.
type chartView struct {
	results.Chart
	Wide, Narrow template.HTML
	Empty        string
}

// From so many columns on a table is set in small type, and up to so many there is room
// for a ratio beside a figure.
const (
	denseColumns = 10
	roomyColumns = 3
)

// From so many cells on a table is folded, unless it is the first of its section or has
// a chart.
const foldedCells = 100

func (s tableSection) table(t results.Table) (tableView, error) {
	view := tableView{Table: &t, Command: command(s.report, s.Section)}
	view.Notes, view.NoteOf = footnotes(&t)
	view.Folded = t.ID != s.Tables[0].ID && len(s.ChartsOf(t.ID)) == 0 && len(t.Rows)*len(t.Columns) >= foldedCells
	wordy := true
	for i := range t.Columns {
		wordy = wordy && texts(&t, i)
	}
	switch n := len(t.Columns); {
	case n >= denseColumns:
		view.Class = "dense"
	case wordy:
		view.Class = "wordy"
	case n <= roomyColumns && t.Base != "":
		view.Class = "roomy"
	}
	for _, c := range s.ChartsOf(t.ID) {
		drawn := chart.Chart{Chart: c, Table: &t}
		wide, err := drawn.Inline(chart.Wide)
		narrow := ""
		if err == nil {
			narrow, err = drawn.Inline(chart.Narrow)
		}
		v := chartView{Chart: c, Wide: template.HTML(wide), Narrow: template.HTML(narrow)}
		if errors.Is(err, chart.ErrEmpty) {
			v.Empty = err.Error()
		} else if err != nil {
			return tableView{}, err
		}
		view.Charts = append(view.Charts, v)
	}
	return view, nil
}

// arrow is the sign of a hint.
func arrow(b results.Better) string {
	switch b {
	case results.Less:
		return "↓"
	case results.More:
		return "↑"
	}
	return ""
}

// longText is from how many characters on a text in a cell needs a wider column.
const longText = 50

// Class is that of the cell in the page.
func (s shown) Class() string {
	classes := []string{"figure"}
	switch {
	case s.Text:
		classes[0] = "text"
	case s.Said:
		classes[0] = "said"
	}
	if len(s.Label) >= longText {
		classes = append(classes, "long")
	}
	return strings.Join(nonEmpty(append(classes, string(s.Mark))...), " ")
}

// breakable lets a long name go on in the next line after a slash.
func breakable(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(html.EscapeString(name), "/", "/<wbr>"))
}

// quoted is what stands in backquotes.
var quoted = regexp.MustCompile("`([^`]+)`")

// prose is a text with what stands in backquotes as code.
func prose(text string) template.HTML {
	return template.HTML(quoted.ReplaceAllString(html.EscapeString(text), "<code>$1</code>"))
}
