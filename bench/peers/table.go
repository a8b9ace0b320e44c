package peers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// Markdown returns the report as a table, and below it what each peer was held to,
// what went wrong, and what could not be run and why.
func (r Report) Markdown() string {
	var b strings.Builder
	catalogue := generatortest.Catalogue()
	b.WriteString("| peer | version | driven by |")
	for _, s := range catalogue {
		fmt.Fprintf(&b, " %s |", s.Fault)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(catalogue)) + "\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&b, "| %s | %s | %s |", p.Name, cmp.Or(p.Version, "–"), p.Driven)
		for _, s := range catalogue {
			fmt.Fprintf(&b, " %s |", p.cell(s.Fault))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n✓ none of it went wrong; ✗ what went wrong, and how often, by the kinds of package generatortest, whether the peer promises better or not; – could not be run, which says nothing about the peer.\n\n")
	for _, s := range catalogue {
		fmt.Fprintf(&b, "- %s %s: %s\n", s.Fault, s.Name, s.What)
	}
	for _, p := range r.Peers {
		b.WriteString("\n" + p.details())
	}
	return b.String()
}

// Result returns what the peer did under a fault, if it was run.
func (p PeerReport) Result(fault string) (generatortest.Result, bool) {
	i := slices.IndexFunc(p.Results, func(r generatortest.Result) bool { return r.Fault == fault })
	if i < 0 {
		return generatortest.Result{}, false
	}
	return p.Results[i], true
}

func (p PeerReport) cell(fault string) string {
	r, ok := p.Result(fault)
	switch {
	case !ok || r.Skipped != "":
		return "–"
	case r.OK():
		return "✓"
	}
	return "✗ " + r.Summary()
}

// details are what the table has no room for.
func (p PeerReport) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", p.Name)
	if p.Module != "" {
		fmt.Fprintf(&b, " (%s)", strings.TrimSpace(p.Module+" "+p.Version))
	}
	b.WriteString("\n")
	if p.Driven == ByNone {
		b.WriteString("- not run: this report does not include it\n")
	}
	fmt.Fprintf(&b, "- time: %s\n", p.How)
	if p.Driven == ByBubble {
		b.WriteString("- run with one caller, in time that does not go wrong\n")
	}
	if p.Claim != "" {
		fmt.Fprintf(&b, "- promised: %s\n", p.Claim)
	}
	if p.Ordered {
		b.WriteString("- promised: the order of one generator's IDs, whatever the clock does\n")
	}
	if p.Remark != "" {
		fmt.Fprintf(&b, "- note: %s\n", p.Remark)
	}
	for _, r := range p.Results {
		if r.Failed() {
			fmt.Fprintf(&b, "- ✗ %s: %s; such as: %s\n", r.Fault, r.Summary(), r.Violations[0])
		}
	}
	var loose []string
	for _, r := range p.Results {
		if r.Disorder > 0 && r.Violated[generatortest.Disorder] == 0 {
			loose = append(loose, fmt.Sprintf("%s %d", r.Fault, r.Disorder))
		}
	}
	if len(loose) > 0 {
		fmt.Fprintf(&b, "- IDs out of order, which breaks no promise: %s\n", strings.Join(loose, ", "))
	}
	for _, note := range grouped(p.Results, func(r generatortest.Result) string { return p.Instead[r.Fault].Note }) {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	for _, reason := range grouped(p.Results, func(r generatortest.Result) string { return r.Skipped }) {
		fmt.Fprintf(&b, "- – %s\n", reason)
	}
	return b.String()
}

// grouped returns what of says of the results, with the faults it says it of.
func grouped(results []generatortest.Result, of func(generatortest.Result) string) []string {
	faults := map[string][]string{}
	var texts []string
	for _, r := range results {
		text := of(r)
		if text == "" {
			continue
		}
		if faults[text] == nil {
			texts = append(texts, text)
		}
		faults[text] = append(faults[text], r.Fault)
	}
	for i, text := range texts {
		texts[i] = strings.Join(faults[text], ", ") + ": " + text
	}
	return texts
}
