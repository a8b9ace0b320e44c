package main

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// reportWriter writes reports one by one.
type reportWriter interface {
	write(report) error
	end() error
}

// writer returns the one for --format.
func (k *chaos) writer() reportWriter {
	switch *k.format {
	case formatJSON:
		return jsonReports{k.out}
	case formatJUnit:
		return &junitReports{w: k.out}
	}
	return &tableReports{w: k.out, whole: k.script == "" && len(k.faults) == 0}
}

// tableReports writes a table for each report, and the violations below it.
type tableReports struct {
	w                     *bufio.Writer
	kept, broken, skipped int  // scenarios so far
	whole                 bool // the run is of all scripts of the catalogue
}

func (t *tableReports) write(r report) error {
	if t.kept+t.broken+t.skipped > 0 {
		fmt.Fprintln(t.w)
	}
	fmt.Fprintf(t.w, "%s\n\n", r.Subject)
	table := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	// A tab writer aligns a column anew below a line without it, hence the widths.
	const line = "%s\t%s\t%9s\t%8s\t%10s\t%8s\t%10s\t%10s%s\n"
	fmt.Fprintf(table, line, "", "SCENARIO", "IDS", "ERRORS", "DUPLICATES", "DISORDER", "STALL", "LEAD", "")
	for _, o := range r.Results {
		scenario := o.Name
		if o.Fault != "" {
			scenario = fmt.Sprintf("%-3s %s", o.Fault, o.Name)
		}
		mark := "✓"
		switch {
		case o.Skipped != "":
			t.skipped++
			fmt.Fprintf(table, "-\t%s\tdoes not apply: %s\n", scenario, o.Skipped)
			continue
		case o.Failed():
			t.broken++
			mark = "✗"
		default:
			t.kept++
		}
		note := ""
		if o.Note != "" { // an empty column would leave blanks at the end of the line
			note = "\t" + o.Note
		}
		count := func(n int) string { return numberText(float64(n)) }
		fmt.Fprintf(table, line, mark, scenario, count(o.Issued), count(o.Errors), count(o.Duplicates), count(o.Disorder), o.LongestStall, o.LargestLead, note)
	}
	table.Flush()
	for _, o := range r.Results {
		if o.Failed() {
			fmt.Fprintf(t.w, "\n✗ %s\n%s  script: %s\n", o.headline(), o.details(), o.Script)
		}
	}
	return t.w.Flush()
}

func (t *tableReports) end() error {
	if t.kept+t.broken+t.skipped == 0 {
		return nil
	}
	fmt.Fprintf(t.w, "\n%d ✓, %d ✗, %d -\n", t.kept, t.broken, t.skipped)
	if t.whole {
		var faults []string
		for _, e := range elsewhere {
			faults = append(faults, e.Fault)
		}
		fmt.Fprintf(t.w, "not run: %s. No script can express them; in the sources, run go test ./chaos_test ./lease\n", strings.Join(faults, ", "))
	}
	return nil // a failed write shows when the output is flushed
}

// title is the fault, if there is one, and the name.
func (o outcome) title() string { return strings.TrimSpace(o.Fault + " " + o.Name) }

// headline counts the violations, and says if details has only the first of them.
func (o outcome) headline() string {
	all := 0
	for _, n := range o.Violated {
		all += n
	}
	text := o.title() + ": " + o.Summary()
	if len(o.Violations) < all {
		text += fmt.Sprintf("; the first %d of each:", generatortest.MaxViolations)
	}
	return text
}

// details lists the violations, one per line.
func (o outcome) details() string {
	var b strings.Builder
	for _, v := range o.Violations {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(v.String(), "\n", "\n  "))
	}
	return b.String()
}

// jsonReports writes each report as one object on one line.
type jsonReports struct{ w *bufio.Writer }

func (j jsonReports) write(r report) error {
	if err := json.NewEncoder(j.w).Encode(r); err != nil {
		return err
	}
	return j.w.Flush()
}

func (j jsonReports) end() error { return nil }

// junitReports collects the reports, since a JUnit file begins with their number.
type junitReports struct {
	w   io.Writer
	all junitSuites
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"` // in seconds
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Skipped *junitSkipped `xml:"skipped"`
	Failure *junitFailure `xml:"failure"`
	Note    string        `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func (j *junitReports) write(r report) error {
	s := junitSuite{Name: r.Subject}
	seconds := 0.0
	for _, o := range r.Results {
		c := junitCase{Class: r.Subject, Name: o.title(), Time: junitTime(o.took.Seconds()), Note: o.Note}
		switch {
		case o.Skipped != "":
			s.Skipped++
			c.Skipped = &junitSkipped{"does not apply: " + o.Skipped}
		case o.Failed():
			s.Failures++
			c.Failure = &junitFailure{
				Message: o.headline(), Type: string(o.Violations[0].Kind),
				Text: fmt.Sprintf("%sscript:\n%s\n", o.details(), o.Script),
			}
		}
		seconds += o.took.Seconds()
		s.Cases = append(s.Cases, c)
	}
	s.Time = junitTime(seconds)
	j.all.add(s)
	return nil
}

// add appends a suite, and counts its cases.
func (a *junitSuites) add(s junitSuite) {
	s.Tests = len(s.Cases)
	a.Tests += s.Tests
	a.Failures += s.Failures
	a.Skipped += s.Skipped
	a.Suites = append(a.Suites, s)
}

func junitTime(seconds float64) string {
	return strconv.FormatFloat(seconds, 'f', 3, 64)
}

func (j *junitReports) end() error { return j.all.write(j.w) }

func (a junitSuites) write(w io.Writer) error {
	a.Name = "tickflake chaos"
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(a); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
