package page

import (
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// Readme is the short form of the report that stands in the README: where it ran, the
// targets, and each verdict with a link to its chart in the Markdown of the whole
// report, which is in a file.
func Readme(r *results.Report, file string) string {
	m := &markdown{report: r}
	m.line("%s\n", generated)
	m.line("%s\n", escaped(machineLine(r)))
	m.line("**%s**\n", headline(r))
	for _, n := range notices(r) {
		if !strings.HasPrefix(n, skippedNotice) { // each stands at its section
			m.line("> %s\n", escaped(n))
		}
	}
	m.targets(file)
	for _, s := range r.Sections {
		m.line("**[%s](%s#%s)**\n", escaped(s.Title), file, s.ID)
		if s.Skipped != "" {
			m.line("- Skipped: %s", escaped(s.Skipped))
		}
		for _, v := range s.Verdict {
			m.line("- %s ([%s](%s#%s))", escaped(v), evidence(s).name, file, evidence(s).id)
		}
		if s.Skipped != "" || len(s.Verdict) > 0 {
			m.line("")
		}
	}
	return strings.TrimRight(m.String(), "\n")
}

// machineLine is where the figures come from, in one sentence.
func machineLine(r *results.Report) string {
	m := r.Machine
	where := nonEmpty(m.CPU, count(m.Cores, "core"), m.OS, prefixed("under ", m.Virtual), prefixed("clock source ", m.ClockSource), m.Go)
	noise := "noise unknown"
	if n := r.Noise(); n.Cells > 0 {
		noise = fmt.Sprintf("repeats differ by ±%s (half of the cells) to ±%s (nine in ten)", results.Percent(n.Typical), results.Percent(n.Most))
	}
	return fmt.Sprintf("Measured on %s, by `%s` in %s: %s; %s.",
		r.Began.UTC().Format("2006-01-02"), r.Command, duration(r.Seconds), strings.Join(where, ", "), noise)
}

// place is where in the whole report something is.
type place struct{ name, id string }

// evidence is what a section's verdicts rest on: its first table, or the chart of it.
func evidence(s results.Section) place {
	if len(s.Tables) == 0 {
		return place{"section", s.ID}
	}
	first := s.Tables[0].ID
	if charts := s.ChartsOf(first); len(charts) > 0 {
		return place{"chart", "chart-" + charts[0].ID}
	}
	return place{"table", "table-" + first}
}
