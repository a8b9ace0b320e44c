package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/page"
)

// modulePath is the path of the root module, in whose directory the README is.
const modulePath = "github.com/tickflake/tickflake"

// repository returns the directory of the root module: the working directory or one
// above it.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && declares(string(text), modulePath) {
			return at, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("neither %s nor a directory above it has the go.mod of %s: run it in a clone of its repository", dir, modulePath)
		}
	}
}

// declares says that a go.mod is that of a module.
func declares(text, path string) bool {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`) == path
		}
	}
	return false
}

// output returns the directory to write to, which it makes: the one that was asked
// for, or that of the repository.
func output(asked, root string, rootErr error) (string, error) {
	folder := asked
	if folder == "" {
		if rootErr != nil {
			return "", fmt.Errorf("%w, or say where to write with --out", rootErr)
		}
		folder = filepath.Join(root, "bench", "report")
	}
	// Now, to learn of a directory that cannot be written before it is needed.
	charts := filepath.Join(folder, "charts")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return "", err
	}
	for _, dir := range []string{folder, charts} {
		if err := writable(dir); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// writable returns why no file can be made in a directory, if that is so.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".bench-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// write writes the report in all forms, and returns the names of the files to look at,
// also of those that there are if it fails.
func write(r *results.Report, folder string) ([]string, error) {
	var files []string
	for _, form := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"report.json", r.WriteJSON}, // first: from it, the others can be made again
		{"report.md", func(to io.Writer) error { return page.Markdown(to, r, "charts") }},
		{"index.html", func(to io.Writer) error { return page.HTML(to, r) }},
	} {
		var text bytes.Buffer
		if err := form.write(&text); err != nil {
			return files, fmt.Errorf("%s: %w", form.name, err)
		}
		name := filepath.Join(folder, form.name)
		if err := replace(name, text.Bytes()); err != nil {
			return files, err
		}
		files = append([]string{name}, files...)
	}
	return files, writeCharts(r, filepath.Join(folder, "charts"))
}

// writeCharts makes the folder hold the report's charts, and none of another report. It
// may be anybody's folder, so drawings that this program has not made stay.
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
		name := filepath.Join(folder, entry.Name())
		if !entry.Type().IsRegular() || !drawnHere(name) {
			continue
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for _, c := range charts {
		if err := os.WriteFile(filepath.Join(folder, c.Name), []byte(c.SVG), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawnHere says that a file is a chart of a report: its element has the ID that says
// so, and its name.
func drawnHere(name string) bool {
	id, ok := strings.CutSuffix(filepath.Base(name), ".svg")
	if !ok {
		return false
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	head, _, _ := strings.Cut(string(text), ">")
	return strings.HasPrefix(head, "<svg ") && strings.Contains(head, ` id="chart-`+id+`" `)
}

// replace writes a file beside the old one and puts it in its place, so that there is
// always a whole one.
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
