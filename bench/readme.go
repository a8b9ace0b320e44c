package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/page"
)

// The results stand between these lines of the README.
const (
	beginMark = "<!-- results:begin -->"
	endMark   = "<!-- results:end -->"
)

// resultsFile has the whole report, as seen from the repository's root, and its charts
// are in the folder of the same name.
const resultsFile = "docs/results.md"

// readmeFits says whether a run with these options can go into the README of the
// repository.
func (o options) readmeFits(root string, rootErr error) error {
	switch {
	case o.quick:
		return usageError{errors.New("--update-readme: the figures of a --quick run are too rough for the README")}
	case len(o.only) > 0:
		return usageError{errors.New("--update-readme: the README has all sections, and --only leaves some out")}
	case rootErr != nil:
		return rootErr
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	_, err = between(string(text), "")
	return err
}

// between returns the text of a README with the results in place of what stands between
// its marks.
func between(text, fresh string) (string, error) {
	for _, mark := range []string{beginMark, endMark} {
		if n := strings.Count(text, mark); n != 1 {
			return "", fmt.Errorf("README.md has the line %q %d times, where it needs it once: the results go between %q and %q", mark, n, beginMark, endMark)
		}
	}
	head, rest, _ := strings.Cut(text, beginMark)
	_, tail, found := strings.Cut(rest, endMark)
	if !found {
		return "", fmt.Errorf("README.md has the line %q before %q", endMark, beginMark)
	}
	return head + beginMark + "\n" + fresh + "\n" + endMark + tail, nil
}

// updateReadme puts the report into the README of the repository, and whole into
// [resultsFile]. It refuses one that is not complete.
func updateReadme(root string, r *results.Report, failed int) error {
	switch {
	case r.Interrupted:
		return errors.New("README.md is as it was: the run was interrupted, and its results are incomplete")
	case r.Quick:
		return errors.New("README.md is as it was: the figures of a quick run are too rough for it")
	case failed > 0:
		return fmt.Errorf("README.md is as it was: sections that failed: %d", failed)
	}
	name := filepath.Join(root, "README.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	updated, err := between(string(text), page.Readme(r, resultsFile))
	if err != nil {
		return err
	}
	full := filepath.Join(root, filepath.FromSlash(resultsFile))
	folder := strings.TrimSuffix(filepath.Base(resultsFile), ".md")
	if err := writeCharts(r, filepath.Join(filepath.Dir(full), folder)); err != nil {
		return err
	}
	var whole bytes.Buffer
	if err := page.Markdown(&whole, r, folder); err != nil {
		return err
	}
	if err := replace(full, whole.Bytes()); err != nil {
		return err
	}
	// Last, as it links to the others.
	return replace(name, []byte(updated))
}

// readmeFiles are those that updateReadme has changed.
func readmeFiles(root string) []string {
	return []string{filepath.Join(root, "README.md"), filepath.Join(root, filepath.FromSlash(resultsFile))}
}
