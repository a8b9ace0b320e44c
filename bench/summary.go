package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/page"
)

// summarize prints what the report comes to, and where it is.
func summarize(to io.Writer, r *results.Report, files []string) error {
	var out strings.Builder
	out.WriteString(page.Text(r))
	out.WriteString("\n")
	for _, f := range files {
		fmt.Fprintln(&out, near(f))
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// near is the name of a file as seen from the working directory, if it is below it.
func near(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	relative, err := filepath.Rel(dir, file)
	if err != nil || strings.HasPrefix(relative, "..") {
		return file
	}
	return relative
}
