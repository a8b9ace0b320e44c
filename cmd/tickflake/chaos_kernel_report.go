package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// kernelSummary is a report by its faults and by its generators, and counted.
type kernelSummary struct {
	faults                []faultRows
	generators            []generatorFaults
	kept, failed, skipped int // rows; failed ones decide the exit code
	known                 int // rows with duplicates that are documented
	peers                 int // rows of a peer that broke its promise
}

// faultRows are the rows of one fault.
type faultRows struct {
	fault string
	clock *kernel.Clock // nil: it moves no clock
	rows  []kernel.Row
}

// generatorFaults are the faults that one generator met, by outcome.
type generatorFaults struct {
	name          string
	kept          int
	known, broken []string
	skipped       string // why the last fault did not apply
}

// never says whether the generator met no fault.
func (g generatorFaults) never() bool { return g.kept+len(g.known)+len(g.broken) == 0 }

// counts says whether a broken promise of the row is a failure of the run: a peer's is not.
func counts(r kernel.Row) bool { return r.Group != kernel.Peers }

func summarize(report kernel.Report) (s kernelSummary) {
	at, by := map[string]int{}, map[string]int{}
	for _, row := range report.Rows {
		i, ok := at[row.Fault]
		if !ok {
			i = len(s.faults)
			at[row.Fault] = i
			s.faults = append(s.faults, faultRows{fault: row.Fault})
		}
		s.faults[i].rows = append(s.faults[i].rows, row)
		j, ok := by[row.Subject]
		if !ok {
			j = len(s.generators)
			by[row.Subject] = j
			s.generators = append(s.generators, generatorFaults{name: row.Subject})
		}
		g := &s.generators[j]
		switch {
		case row.Skipped != "":
			s.skipped++
			g.skipped = row.Skipped
		case len(row.Broken) == 0 && row.Known == "":
			s.kept++
			g.kept++
		case len(row.Broken) == 0:
			s.known++
			g.known = append(g.known, row.Fault)
		case counts(row):
			s.failed++
			g.broken = append(g.broken, row.Fault)
		default:
			s.peers++
			g.broken = append(g.broken, row.Fault)
		}
	}
	for _, clock := range report.Clocks {
		if i, ok := at[clock.Fault]; ok {
			s.faults[i].clock = &clock
		}
	}
	return s
}

// writeKernel writes the report in the format of --format.
func (k *chaos) writeKernel(report kernel.Report, s kernelSummary) error {
	switch *k.format {
	case formatJSON:
		return json.NewEncoder(k.out).Encode(report)
	case formatJUnit:
		return kernelJUnit(report, s).write(k.out)
	}
	writeKernelTable(k.out, report, s)
	return k.out.Flush()
}

func writeKernelTable(w *bufio.Writer, report kernel.Report, s kernelSummary) {
	fmt.Fprintf(w, "%s, QEMU %s\n", report.Kernel, report.QEMU)
	never := map[string]bool{} // those that met no fault are listed once, at the end
	for _, g := range s.generators {
		never[g.name] = g.never()
	}
	for _, f := range s.faults {
		fmt.Fprintf(w, "\n%s", f.fault)
		if about := aboutFault(f.fault); about != "" {
			fmt.Fprintf(w, ": %s", about)
		}
		fmt.Fprintln(w)
		if f.clock != nil {
			fmt.Fprintln(w, clockLine(*f.clock))
		}
		fmt.Fprintln(w)
		writeRows(w, slices.DeleteFunc(slices.Clone(f.rows), func(r kernel.Row) bool { return never[r.Subject] }))
		for _, row := range f.rows {
			if len(row.Broken) > 0 {
				fmt.Fprintf(w, "\n✗ %s, %s:\n%s", row.Fault, row.Subject, brokenLines(row))
			}
		}
	}
	if len(s.faults) > 1 {
		writeGenerators(w, s.generators)
	}
	fmt.Fprintln(w)
	for _, g := range s.generators {
		if never[g.name] {
			fmt.Fprintf(w, "- %s was not run: %s\n", g.name, g.skipped)
		}
	}
	for _, skip := range report.Skipped {
		fmt.Fprintf(w, "- %s was not run: %s\n", skip.Fault, skip.Why)
	}
	fmt.Fprintf(w, "%d ✓, %d ✗, %d !, %d -", s.kept, s.failed+s.peers, s.known, s.skipped)
	if s.known > 0 {
		fmt.Fprint(w, "; ! has duplicates that are documented")
	}
	if s.peers > 0 {
		fmt.Fprintf(w, "; %d of the ✗ are of peers, which do not count for the exit code", s.peers)
	}
	fmt.Fprintln(w)
}

func writeRows(w *bufio.Writer, rows []kernel.Row) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// A tab writer aligns a column anew below a line without it, hence the widths.
	const line = "%s\t%s\t%9s\t%8s\t%10s\t%8s\t%10s\t%10s\t%10s%s\n"
	fmt.Fprintf(table, line, "", "GENERATOR", "IDS", "ERRORS", "DUPLICATES", "DISORDER", "STALL", "LEAD", "RECOVERY", "")
	count := func(n int) string { return numberText(float64(n)) }
	for _, row := range rows {
		v, note := row.Verdict, ""
		if row.Skipped != "" {
			fmt.Fprintf(table, "-\t%s\tdoes not apply: %s\n", row.Subject, row.Skipped)
			continue
		}
		if text := strings.TrimPrefix(row.Known+"; "+row.Note, "; "); text != "" { // an empty column would leave blanks at the end of the line
			note = "\t" + strings.TrimSuffix(text, "; ")
		}
		fmt.Fprintf(table, line, mark(len(row.Broken) > 0, row.Known != ""), row.Subject, count(v.IDs), count(v.Failed), count(v.Duplicates), count(v.Disorder),
			shortTime(v.Stall), shortTime(v.Lead), recovery(v), note)
	}
	table.Flush()
}

// writeGenerators lists the faults that broke a promise, by generator.
func writeGenerators(w *bufio.Writer, all []generatorFaults) {
	fmt.Fprint(w, "\nall faults\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\t%8s\n", "GENERATOR", "✓ FAULTS")
	for _, g := range all {
		if g.never() {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%8d", mark(len(g.broken) > 0, len(g.known) > 0), g.name, g.kept)
		if len(g.broken) > 0 {
			fmt.Fprintf(table, "  ✗ %s", strings.Join(g.broken, ", "))
		}
		if len(g.known) > 0 {
			fmt.Fprintf(table, "  ! %s", strings.Join(g.known, ", "))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

func mark(broken, known bool) string {
	switch {
	case broken:
		return "✗"
	case known:
		return "!"
	}
	return "✓"
}

// brokenLines lists the promises that did not hold, and the first error.
func brokenLines(row kernel.Row) string {
	var b strings.Builder
	for _, promise := range row.Broken {
		fmt.Fprintf(&b, "  %s\n", visible(promise))
	}
	if text := row.Verdict.Error; text != "" && !strings.Contains(strings.Join(row.Broken, "\n"), text) {
		fmt.Fprintf(&b, "  first error: %s\n", visible(row.Verdict.Error))
	}
	return b.String()
}

// clockLine says how far the clocks moved.
func clockLine(c kernel.Clock) string {
	line := fmt.Sprintf("in %s of the host, CLOCK_REALTIME moved by %s and CLOCK_MONOTONIC by %s", shortTime(c.Host), shortTime(c.Realtime), shortTime(c.Monotonic))
	if shortTime(c.Boottime) != shortTime(c.Monotonic) {
		line += fmt.Sprintf(", CLOCK_BOOTTIME by %s", shortTime(c.Boottime))
	}
	if c.Back > 0 {
		line += fmt.Sprintf("; the largest step back was %s", shortTime(c.Back))
	}
	if c.Note != "" {
		line += "; " + c.Note
	}
	return line
}

// shortTime rounds a time to three digits or so.
func shortTime(d time.Duration) time.Duration {
	switch size := d.Abs(); {
	case size >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case size >= time.Second:
		return d.Round(10 * time.Millisecond)
	case size >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// recovery is the time to recover. It is below 0 if there was none.
func recovery(v kernel.Verdict) string {
	if v.Recovery < 0 {
		return "never"
	}
	return shortTime(v.Recovery).String()
}

func aboutFault(name string) string {
	for _, fault := range kernel.Faults() {
		if fault.Name == name {
			return fault.About
		}
	}
	return ""
}

// kernelJUnit returns a test suite per fault, with a test case per subject. The broken
// promise of a peer is a note there.
func kernelJUnit(report kernel.Report, s kernelSummary) (all junitSuites) {
	for _, f := range s.faults {
		suite := junitSuite{Name: f.fault, Time: junitTime(0)}
		if f.clock != nil {
			suite.Time = junitTime(f.clock.Host.Seconds())
		}
		for _, row := range f.rows {
			c := junitCase{Class: f.fault, Name: row.Subject, Time: junitTime(0), Note: row.Known}
			switch {
			case row.Skipped != "":
				suite.Skipped++
				c.Skipped = &junitSkipped{"does not apply: " + row.Skipped}
			case len(row.Broken) > 0 && counts(row):
				suite.Failures++
				c.Failure = &junitFailure{Message: row.Broken[0], Type: "promise", Text: brokenLines(row)}
			case len(row.Broken) > 0:
				c.Note = brokenLines(row)
			}
			suite.Cases = append(suite.Cases, c)
		}
		all.add(suite)
	}
	for _, skip := range report.Skipped {
		all.add(junitSuite{Name: skip.Fault, Time: junitTime(0), Skipped: 1, Cases: []junitCase{
			{Class: skip.Fault, Name: "all", Time: junitTime(0), Skipped: &junitSkipped{"was not run: " + skip.Why}},
		}})
	}
	return all
}
