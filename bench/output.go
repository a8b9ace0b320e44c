package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// deliver writes the report as a page for people, and as JSON and text for machines, and prints the
// summary and the names of the files, also of those that are there after an error. The JSON comes
// first: the others can be made from it.
func (p program) deliver(r *report.Report) error {
	var summary, samples, page, text bytes.Buffer
	encoder := json.NewEncoder(&samples)
	encoder.SetEscapeHTML(false)
	err := errors.Join(r.Summary(&summary), encoder.Encode(r))
	write := func(name, text string) {
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
		}
		if err == nil && !strings.HasSuffix(name, ".svg") {
			fmt.Fprintln(&summary, name)
		}
	}
	write(filepath.Join(p.folder, "report.json"), samples.String())
	err = errors.Join(err, r.HTML(&page), r.Benchfmt(&text))
	write(filepath.Join(p.folder, "index.html"), page.String())
	write(filepath.Join(p.folder, "report.txt"), text.String())
	if err == nil && p.publish {
		err = p.publishable(r)
	}
	if err == nil && p.publish {
		files, failed := published(r)
		err = errors.Join(failed, os.RemoveAll(filepath.Join(root, "docs", "results"))) // the charts of an older report
		write(filepath.Join(root, "docs", "results.json"), samples.String())
		for _, name := range slices.Sorted(maps.Keys(files)) {
			write(filepath.Join(root, name), files[name])
		}
	}
	_, printed := p.out.Write(summary.Bytes())
	return errors.Join(err, printed)
}

// published are the files of the repository that are made of a report, by their paths from its top.
func published(r *report.Report) (map[string]string, error) {
	var results, targets bytes.Buffer
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	err = errors.Join(err, r.Markdown(&results), r.TargetsMarkdown(&targets))
	files := map[string]string{"docs/results.md": results.String(), "bench/targets.md": targets.String(), "README.md": withTable(string(readme), readmeTable(r))}
	for name, svg := range r.Charts() {
		files["docs/results/"+name] = svg
	}
	return files, err
}

// publishable returns why a report is not fit for docs/results.md, or nil.
func (p program) publishable(r *report.Report) error {
	because := ""
	switch {
	case r.Quick:
		because = "the figures of a quick run are too rough"
	case r.Interrupted:
		because = "the run was interrupted"
	}
	for _, id := range p.ids() {
		switch s := r.Section(id); {
		case s.ID == "" || s.Failed:
			because = "section " + id + " is missing or failed"
		case s.Unusable() != "":
			because = "section " + id + ": " + s.Unusable() + "; run it again"
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
		return fmt.Sprintf("\n%s\n([Measured](docs/results.md#kernel) on a real kernel, %s, at some hundred IDs per second,\nby `go run ./bench --only kernel`. [`Restored`](docs/operate.md#restored-memory) tells a generator that its memory is a copy;\na machine with VMClock tells it by itself. [What each fault does](docs/kernel.md).)\n\n", b.String(), s.Table("kernel-run").Cell("kernel", "is").Text)
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
