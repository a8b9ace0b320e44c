package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// suite is one table of a report: a generator and its scenarios, or a fault and its generators.
type suite struct {
	name, about string
	rows        []row
}

// row is one line of a table.
type row struct {
	name    string
	figures []string
	note    string
	skipped string   // why it was not run; empty: it was
	known   bool     // its duplicates are documented
	broken  []string // the promise that did not hold, and what else there is to say; empty: all held
	peer    bool     // of another project: a broken promise does not count
}

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

// write writes a table, and below it what was broken.
func (s suite) write(w io.Writer, header []string) {
	fmt.Fprintf(w, "%s\n%s\n", s.name, s.about)
	var lines [][]string
	for _, r := range s.rows {
		line := append([]string{r.mark(), r.name}, r.figures...)
		if text := r.skipped + r.note; text != "" {
			for len(line) < len(header) { // the text stands behind the figures
				line = append(line, "")
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	_ = command.Table(w, header, lines) // a failed write shows when the output is flushed
	for _, r := range s.rows {
		if len(r.broken) > 0 {
			fmt.Fprintf(w, "\n✗ %s\n", strings.ReplaceAll(strings.Join(r.broken, "\n"), "\n", "\n  "))
		}
	}
	fmt.Fprintln(w)
}

// tally counts the rows of a report.
type tally struct {
	marks  map[string]int
	failed int // rows whose broken promise counts
}

func (t *tally) add(s suite) {
	if t.marks == nil {
		t.marks = map[string]int{}
	}
	for _, r := range s.rows {
		t.marks[r.mark()]++
		if len(r.broken) > 0 && !r.peer {
			t.failed++
		}
	}
}

// String has the rows by their marks.
func (t *tally) String() string {
	text := fmt.Sprintf("%d ✓, %d ✗, %d -", t.marks["✓"], t.marks["✗"], t.marks["-"])
	if known := t.marks["!"]; known > 0 {
		text += fmt.Sprintf(", %d ! with duplicates that are documented", known)
	}
	if peers := t.marks["✗"] - t.failed; peers > 0 {
		text += fmt.Sprintf("; %d of the ✗ are of peers, which do not count for the exit code", peers)
	}
	return text
}
