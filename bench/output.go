package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/fleet"
)

// root is the top of the repository.
var root = fleet.Top()

// commit is that of the code in the repository. It is empty if Git does not tell.
func commit() string {
	out, _ := exec.Command("git", "-C", root, "describe", "--always", "--dirty", "--exclude=*").Output()
	return strings.TrimSpace(string(out))
}

// deliver writes the report in all forms, and prints the summary and the names of the files, also
// of those that are there after an error.
func (p program) deliver(r *report.Report) error {
	var summary bytes.Buffer
	err := errors.Join(r.Check(), r.Summary(&summary))
	write := func(name string, render func(*bytes.Buffer) error) {
		var text bytes.Buffer
		if err == nil {
			err = render(&text)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(name, text.Bytes(), 0o644)
		}
		if err == nil && !strings.HasSuffix(name, ".svg") {
			fmt.Fprintln(&summary, name)
		}
	}
	// The JSON comes first: the others can be made from it.
	all := func(jsonName, markdownName, charts string) {
		write(jsonName, func(to *bytes.Buffer) error {
			encoder := json.NewEncoder(to)
			encoder.SetEscapeHTML(false)
			return encoder.Encode(r)
		})
		write(markdownName, func(to *bytes.Buffer) error { return r.Markdown(to, filepath.Base(charts)) })
		for name, svg := range r.Charts() {
			write(filepath.Join(charts, name), func(to *bytes.Buffer) error { to.WriteString(svg); return nil })
		}
	}
	in := func(name string) string { return filepath.Join(p.folder, name) }
	write(in("index.html"), func(to *bytes.Buffer) error { return r.HTML(to) })
	all(in("report.json"), in("report.md"), in("charts"))
	write(in("report.txt"), func(to *bytes.Buffer) error { return r.Benchfmt(to) })
	if err == nil && p.publish {
		if err = p.publishable(r); err == nil {
			docs := filepath.Join(root, "docs")
			err = os.RemoveAll(filepath.Join(docs, "results")) // the charts of an older report
			all(filepath.Join(docs, "results.json"), filepath.Join(docs, "results.md"), filepath.Join(docs, "results"))
			write(filepath.Join(root, "bench", "targets.md"), func(to *bytes.Buffer) error { return r.TargetsMarkdown(to) })
			readme := filepath.Join(root, "README.md")
			write(readme, func(to *bytes.Buffer) error {
				old, err := os.ReadFile(readme)
				to.WriteString(withTable(string(old), readmeTable(r)))
				return err
			})
		}
	}
	_, printed := p.out.Write(summary.Bytes())
	return errors.Join(err, printed)
}

// publishable returns why a report is not fit for docs/results.md, or nil.
func (p program) publishable(r *report.Report) error {
	because := ""
	switch {
	case r.Quick:
		because = "the figures of a quick run are too rough"
	case r.Interrupted:
		because = "the run was interrupted"
	case r.Unusable() != "":
		because = "the run is unusable: " + r.Unusable() + "; run it again"
	}
	for _, id := range p.ids() {
		if s := r.Section(id); s.ID == "" || s.Failed {
			because = "section " + id + " is missing or failed"
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

// readmeTable is the answer of the section on a real kernel. It is empty if there is none.
func readmeTable(r *report.Report) string {
	s := r.Section("kernel")
	var b strings.Builder
	if t := s.Table("kernel-answer"); len(t.Rows) > 0 && t.Markdown(&b) == nil {
		return fmt.Sprintf("\n%s\n([Measured](docs/results.md#kernel) on a real kernel, %s, at some hundred IDs per second,\nby `go run ./bench --only kernel`. After the snapshot the copy of tickflake called\n[`Restored`](docs/operate.md#restored-memory), unless the machine has VMClock. [What each fault does to clocks](docs/kernel.md).)\n\n", b.String(), s.Table("kernel-run").Cell("kernel", "is").Text)
	}
	return ""
}

// withTable puts the table into the text of a README. A README without a place for it is
// unchanged.
func withTable(readme, table string) string {
	before, rest, ok := strings.Cut(readme, readmeBegin)
	_, after, closed := strings.Cut(rest, readmeEnd)
	if !ok || !closed || table == "" {
		return readme
	}
	return before + readmeBegin + table + readmeEnd + after
}
