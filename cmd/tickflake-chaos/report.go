package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

const (
	formatTable = "table"
	formatJUnit = "junit"
)

func formatFlag(cmd *cobra.Command) *string {
	return command.ChoiceFlag(cmd, "format", "output `FORMAT`", formatTable, command.FormatJSON, formatJUnit)
}

// suite is one table of a report: a generator and its scenarios, or a fault and its generators.
type suite struct {
	name, about string
	took        time.Duration
	rows        []row
}

func (s *suite) add(r row) {
	s.took += r.took
	s.rows = append(s.rows, r)
}

// row is one line of a table.
type row struct {
	name    string
	figures []string
	note    string
	skipped string // why it was not run; empty: it was
	known   bool   // its duplicates are documented
	took    time.Duration

	broken  string // the promise that did not hold; empty: all held
	details []string
	peer    bool // of another project: a broken promise does not count
}

func (r row) mark() string {
	switch {
	case r.skipped != "":
		return "-"
	case r.broken != "":
		return "✗"
	case r.known:
		return "!"
	}
	return "✓"
}

// reporter writes a report in the format of --format, suite by suite.
type reporter struct {
	*command.Console
	format string
	header []string

	marks  map[string]int // how many rows have a mark
	failed int            // rows whose broken promise counts
	junit  junit.Testsuites
}

// write writes a suite; object is its JSON, if it has any of its own.
func (r *reporter) write(object any, s suite) error {
	begun := r.marks != nil
	if !begun {
		r.marks = map[string]int{}
	}
	for _, row := range s.rows {
		r.marks[row.mark()]++
		if row.broken != "" && !row.peer {
			r.failed++
		}
	}
	switch r.format {
	case command.FormatJSON:
		if object != nil {
			if err := json.NewEncoder(r.Out).Encode(object); err != nil {
				return err
			}
		}
	case formatJUnit: // a file begins with the number of its suites
		r.junit.AddSuite(junitOf(s))
		return nil
	default:
		if begun {
			fmt.Fprintln(r.Out)
		}
		writeSuite(r.Out, r.header, s)
	}
	return r.Out.Flush()
}

func writeSuite(w io.Writer, header []string, s suite) {
	fmt.Fprintf(w, "%s\n", s.name)
	if s.about != "" {
		fmt.Fprintf(w, "%s\n", s.about)
	}
	fmt.Fprintln(w)
	var lines [][]string
	for _, r := range s.rows {
		line := append([]string{r.mark(), r.name}, r.figures...)
		if text := r.skipped + r.note; text != "" {
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	_ = command.Table(w, header, lines) // a failed write shows when the output is flushed
	for _, r := range s.rows {
		if r.broken != "" {
			fmt.Fprintf(w, "\n✗ %s\n%s", r.broken, indented(r.details))
		}
	}
}

func indented(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// end writes the rest, and counts in a table the rows by their marks.
func (r *reporter) end() error {
	switch {
	case r.format == formatJUnit:
		r.junit.Name = "tickflake-chaos"
		fmt.Fprint(r.Out, xml.Header)
		return r.junit.WriteXML(r.Out)
	case r.format == formatTable && r.marks != nil:
		fmt.Fprintf(r.Out, "\n%d ✓, %d ✗, %d -", r.marks["✓"], r.marks["✗"], r.marks["-"])
		if known := r.marks["!"]; known > 0 {
			fmt.Fprintf(r.Out, ", %d ! with duplicates that are documented", known)
		}
		if peers := r.marks["✗"] - r.failed; peers > 0 {
			fmt.Fprintf(r.Out, "; %d of the ✗ are of peers, which do not count for the exit code", peers)
		}
		fmt.Fprintln(r.Out)
	}
	return nil
}

// verdict returns the error of a report with a broken promise that counts.
func (r *reporter) verdict() error {
	if r.failed > 0 {
		return command.ErrReported
	}
	return nil
}

// junitOf returns a test suite with a test case for each row. The broken promise of a peer is a
// note there.
func junitOf(s suite) junit.Testsuite {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	suite := junit.Testsuite{Name: s.name, Time: seconds(s.took)}
	for _, r := range s.rows {
		test := junit.Testcase{Classname: s.name, Name: strings.Join(strings.Fields(r.name), " "), Time: seconds(r.took)}
		switch {
		case r.skipped != "":
			test.Skipped = &junit.Result{Message: r.skipped}
		case r.broken != "" && !r.peer:
			test.Failure = &junit.Result{Message: r.broken, Type: "promise", Data: indented(r.details)}
		case r.broken != "":
			test.SystemOut = &junit.Output{Data: r.broken + "\n" + indented(r.details)}
		case r.note != "":
			test.SystemOut = &junit.Output{Data: r.note}
		}
		suite.AddTestcase(test)
	}
	return suite
}
