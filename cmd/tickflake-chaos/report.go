package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/generator/generatortest"
)

const formatTable = "table"

// output is where a report goes, and how: the flags.
type output struct {
	format *string
	junit  string // a path, or empty
}

func outputFlags(cmd *cobra.Command) *output {
	o := &output{format: command.ChoiceFlag(cmd, "format", "output `FORMAT`", formatTable, command.FormatJSON)}
	cmd.Flags().StringVar(&o.junit, "junit", "", "write JUnit's XML to `FILE`, too, and pictures of what failed beside it, as FILE with the suffix .html")
	return o
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

	broken  []string              // the promise that did not hold, and what else there is to say; empty: all held
	failure generatortest.Failure // how it did not
	peer    bool                  // of another project: a broken promise does not count
}

// title is the name without the blanks of a column.
func (r row) title() string { return strings.Join(strings.Fields(r.name), " ") }

func (r row) mark() string {
	switch {
	case r.skipped != "":
		return "-"
	case len(r.broken) > 0:
		return "✗"
	case r.known:
		return "!"
	}
	return "✓"
}

// reporter writes a report as its flags say, suite by suite.
type reporter struct {
	*command.Console
	*output
	header []string

	marks    map[string]int // how many rows have a mark
	failed   int            // rows whose broken promise counts
	suites   junit.Testsuites
	failures []generatortest.Failure
}

// write writes a suite; object is its JSON, if it has any of its own.
func (r *reporter) write(object any, s suite) error {
	begun := r.marks != nil
	if !begun {
		r.marks = map[string]int{}
	}
	for _, row := range s.rows {
		r.marks[row.mark()]++
		if len(row.broken) > 0 {
			if !row.peer {
				r.failed++
			}
			row.failure.Title, row.failure.Lines = s.name+": "+row.title(), row.broken
			r.failures = append(r.failures, row.failure)
		}
	}
	r.suites.AddSuite(junitOf(s))
	switch {
	case *r.format == formatTable && begun:
		fmt.Fprintln(r.Out)
		fallthrough
	case *r.format == formatTable:
		writeSuite(r.Out, r.header, s)
	case object != nil:
		if err := json.NewEncoder(r.Out).Encode(object); err != nil {
			return err
		}
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
		if len(r.broken) > 0 {
			fmt.Fprintf(w, "\n✗ %s\n%s", r.broken[0], indented(r.broken[1:]))
		}
	}
}

func indented(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n  ") + "\n"
}

// end counts in a table the rows by their marks, and writes the files.
func (r *reporter) end() error {
	if *r.format == formatTable && r.marks != nil {
		fmt.Fprintf(r.Out, "\n%d ✓, %d ✗, %d -", r.marks["✓"], r.marks["✗"], r.marks["-"])
		if known := r.marks["!"]; known > 0 {
			fmt.Fprintf(r.Out, ", %d ! with duplicates that are documented", known)
		}
		if peers := r.marks["✗"] - r.failed; peers > 0 {
			fmt.Fprintf(r.Out, "; %d of the ✗ are of peers, which do not count for the exit code", peers)
		}
		fmt.Fprintln(r.Out)
	}
	if r.junit == "" {
		return nil
	}
	r.suites.Name = "tickflake-chaos"
	var text bytes.Buffer
	text.WriteString(xml.Header)
	if err := errors.Join(r.suites.WriteXML(&text), os.WriteFile(r.junit, text.Bytes(), 0o644)); err != nil {
		return err
	}
	page := strings.TrimSuffix(r.junit, filepath.Ext(r.junit)) + ".html"
	if len(r.failures) == 0 { // nor is one left of an earlier run
		if err := os.Remove(page); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	text.Reset()
	_ = generatortest.WritePage(&text, "tickflake-chaos: what failed", r.failures...) // to memory
	if *r.format == formatTable {
		fmt.Fprintf(r.Out, "pictures of what failed: %s\n", page)
	}
	return os.WriteFile(page, text.Bytes(), 0o644)
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
		test := junit.Testcase{Classname: s.name, Name: r.title(), Time: seconds(r.took)}
		switch {
		case r.skipped != "":
			test.Skipped = &junit.Result{Message: r.skipped}
		case len(r.broken) > 0 && !r.peer:
			test.Failure = &junit.Result{Message: r.broken[0], Type: "promise", Data: indented(r.broken[1:])}
		case len(r.broken) > 0:
			test.SystemOut = &junit.Output{Data: r.broken[0] + "\n" + indented(r.broken[1:])}
		case r.note != "":
			test.SystemOut = &junit.Output{Data: r.note}
		}
		suite.AddTestcase(test)
	}
	return suite
}
