package page

import (
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// Text is a summary of the report for a terminal: the targets, and what each section
// comes to.
func Text(r *results.Report) string {
	m := new(markdown) // which only gathers lines here
	m.line("%s", headline(r))
	for _, n := range notices(r) {
		if !strings.HasPrefix(n, skippedNotice) { // each stands at its section
			m.line("%s", plain(n))
		}
	}
	for _, g := range goals(r) {
		sign := g.Mark().Sign()
		if sign == "" {
			sign = "?"
		}
		m.line("  %s %-6s  %s: %s (%s)", sign, g.State(), plain(g.Text), g.Value(), g.Limit())
		if why := g.Reason(); why != "" {
			m.line("            %s", plain(why))
		}
	}
	for _, s := range r.Sections {
		if s.Skipped == "" && len(s.Verdict) == 0 {
			continue
		}
		m.line("\n%s", s.Title)
		if s.Skipped != "" {
			m.line("  skipped: %s", plain(s.Skipped))
		}
		for _, v := range s.Verdict {
			m.line("  %s", plain(v))
		}
	}
	return m.String()
}

// plain is a text without the quotes of code.
func plain(text string) string { return quoted.ReplaceAllString(text, "$1") }
