package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/program"
)

// root is the top of the repository, and results the page with the published run.
var (
	root    = program.Top()
	results = filepath.Join(root, "docs", "results.md")
)

// commit is that of the code in the repository. It is empty if Git does not tell.
func commit() string {
	out, _ := exec.Command("git", "-C", root, "describe", "--always", "--dirty", "--exclude=*").Output()
	return strings.TrimSpace(string(out))
}

// earlier reads the first table of the published run: the cells of each row, by its name without a note.
func earlier() map[string][]string {
	text, _ := os.ReadFile(results) // without it, nothing stands in empty columns
	_, table, _ := strings.Cut(string(text), "\n|---|")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string][]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		name, _, _ := strings.Cut(cells[0], " <sup>")
		rows[name] = cells[1:]
	}
	return rows
}

// deliver writes the report as a page for people, and as text for machines, and prints the
// summary and the names of the files, also of those that are there after an error.
func (p command) deliver(r *report.Report) (err error) {
	var summary bytes.Buffer
	write := func(name string, form func(io.Writer) error) {
		var text bytes.Buffer
		if err = errors.Join(err, form(&text)); err == nil {
			err = os.WriteFile(name, text.Bytes(), 0o644)
		}
		if err == nil {
			fmt.Fprintln(&summary, name)
		}
	}
	err = r.Summary(&summary)
	write(filepath.Join(p.folder, "report.txt"), r.Benchfmt)
	write(filepath.Join(p.folder, "report.md"), r.Markdown)
	if err == nil && p.publish {
		if err = publishable(r); err == nil {
			write(results, r.Brief)
			write(filepath.Join(root, "README.md"), func(to io.Writer) error { return withTable(to, filepath.Join(root, "README.md"), r) })
		}
	}
	_, printed := p.out.Write(summary.Bytes())
	return errors.Join(err, printed)
}

// publishable returns why a report is not fit for docs/results.md, or nil.
func publishable(r *report.Report) error {
	because := ""
	if r.Quick || r.Interrupted {
		because = "the run was quick, and its figures are rough, or it was interrupted"
	}
	for _, s := range r.Sections {
		switch {
		case s.Skipped != "":
			because = "section " + s.ID + ": " + s.Skipped
		case s.Unusable() != "":
			because = "section " + s.ID + ": " + s.Unusable() + "; run it again"
		}
	}
	if because == "" {
		return nil
	}
	return fmt.Errorf("--publish: docs/results.md is unchanged: %s", because)
}

// The table on top of the README stands between these lines.
const (
	readmeBegin = "<!-- Written by go run ./bench --publish. Edits are lost. -->\n"
	readmeEnd   = "<!-- end -->\n"
)

// withTable writes a README with the answer of the section on a real kernel.
func withTable(to io.Writer, readme string, r *report.Report) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), readmeBegin)
	_, after, closed := strings.Cut(rest, readmeEnd)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table, between %q and %q", readme, readmeBegin, readmeEnd)
	}
	var b strings.Builder
	s := r.Section("kernel")
	err = s.Table("kernel-answer").Markdown(&b)
	kernel, _, _ := strings.Cut(strings.Join(s.Notes, ""), ",")
	_, wrote := fmt.Fprintf(to, "%s%s\n%s\n([Measured](docs/results.md#kernel) on a real kernel, %s,\nby `go run ./bench --only kernel`. A copy of a machine is told by the hypervisor's VMClock, or by a call of\n[`Restored`](docs/operate.md#restored-memory).)\n\n%s%s",
		before, readmeBegin, b.String(), kernel, readmeEnd, after)
	return errors.Join(err, wrote)
}
