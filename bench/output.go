package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/page"
	"github.com/tickflake/tickflake/bench/results"
)

// modulePath is the path of the root module.
const modulePath = "github.com/tickflake/tickflake"

// repository returns the directory of the root module: the working directory or one above
// it.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.Contains("\n"+string(text), "\nmodule "+modulePath+"\n") {
			return at, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("neither %s nor a directory above it has the go.mod of %s: run bench in a clone of its repository, or say where to write with --out", dir, modulePath)
		}
	}
}

// commit is that of the code in the repository. It is empty if Git does not tell.
func commit(root string) string {
	if root == "" {
		return ""
	}
	out, err := exec.Command("git", "-C", root, "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// destination is where a report goes.
type destination struct {
	root    string // of the repository; empty if --out is enough
	folder  string
	publish bool
}

// prepare makes the directory to write to, and finds out that it cannot be written before
// it is needed.
func (p program) prepare(o options) (destination, error) {
	root, err := repository()
	if err != nil && (o.out == "" || o.publish) {
		return destination{}, err
	}
	d := destination{root: root, folder: o.out, publish: o.publish}
	if d.folder == "" {
		d.folder = filepath.Join(root, "bench", "report")
	}
	charts := filepath.Join(d.folder, "charts")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return destination{}, err
	}
	for _, dir := range []string{d.folder, charts} {
		probe, err := os.CreateTemp(dir, ".bench-*")
		if err != nil {
			return destination{}, err
		}
		if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
			return destination{}, err
		}
	}
	return d, nil
}

// deliver writes the report in all forms, and prints the summary and the names of the
// files, also of those that are there after an error.
func (p program) deliver(r *results.Report, to destination) error {
	files, err := write(r, to.folder, "report.json", "report.md", "charts")
	if err == nil {
		name := filepath.Join(to.folder, "index.html")
		var text bytes.Buffer
		if err = page.HTML(&text, r); err == nil {
			if err = replace(name, text.Bytes()); err == nil {
				files = append([]string{name}, files...)
			}
		}
	}
	if err == nil && to.publish {
		if err = p.publishable(r); err == nil {
			var published []string
			published, err = write(r, filepath.Join(to.root, "docs"), "results.json", "results.md", "results")
			files = append(files, published...)
			if err == nil {
				err = writeReadme(r, filepath.Join(to.root, "README.md"))
			}
		}
	}
	var out bytes.Buffer
	if summary := page.Summary(&out, r); summary != nil {
		return errors.Join(summary, err)
	}
	for _, f := range files {
		fmt.Fprintln(&out, f)
	}
	if _, printed := p.out.Write(out.Bytes()); err == nil {
		err = printed
	}
	return err
}

// publishable returns why a report is not fit for docs/results.md, or nil.
func (p program) publishable(r *results.Report) error {
	because := ""
	switch {
	case r.Quick:
		because = "the figures of a quick run are too rough"
	case r.Interrupted:
		because = "the run was interrupted"
	case r.Unusable() != "":
		because = "the run is unusable: " + r.Unusable() + "; run it again"
	}
	var ids []string
	for _, s := range r.Sections {
		ids = append(ids, s.ID)
		if s.Failed {
			because = "section " + s.ID + " failed"
		}
	}
	if got, want := strings.Join(ids, ", "), strings.Join(p.ids(), ", "); because == "" && got != want {
		because = fmt.Sprintf("the report has the sections %s, where all are %s", got, want)
	}
	if because == "" {
		return nil
	}
	return fmt.Errorf("--publish: docs/results.md is unchanged: %s", because)
}

// write writes the report as JSON and as Markdown with its charts, and returns the names
// of the files, also of those that are there after an error. The JSON comes first: the
// others can be made from it.
func write(r *results.Report, folder, jsonName, markdownName, charts string) (files []string, err error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	var text, markdown bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, jsonName)
	if err := replace(name, text.Bytes()); err != nil {
		return nil, err
	}
	files = append(files, name)
	if err := page.Markdown(&markdown, r, charts); err != nil {
		return files, err
	}
	if err := writeCharts(r, filepath.Join(folder, charts)); err != nil {
		return files, err
	}
	name = filepath.Join(folder, markdownName)
	if err := replace(name, markdown.Bytes()); err != nil {
		return files, err
	}
	return append(files, name), nil
}

// writeCharts makes the folder hold the report's charts, and none of an older report. Files
// of others stay.
func writeCharts(r *results.Report, folder string) error {
	charts, err := page.Charts(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	old, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range old {
		if !strings.HasSuffix(entry.Name(), ".svg") || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		text, err := os.ReadFile(name)
		if err == nil && page.IsChart(string(text)) {
			err = os.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	for name, svg := range charts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file beside the old one and renames it, so that there is always a
// whole one.
func replace(name string, text []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	err = errors.Join(err, fresh.Chmod(0o644), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}
