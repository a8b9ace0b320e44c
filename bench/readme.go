package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tickflake/tickflake/bench/results"
)

// The table on top of the README stands between these lines.
const (
	readmeBegin = "<!-- Written by go run ./bench --publish. Edits are lost. -->\n"
	readmeEnd   = "<!-- end -->\n"
)

// readmeFaults are the columns of that table, with their headings.
var readmeFaults = [][2]string{
	{"restart-back-1s", "clock −1 s, and a restart"},
	{"step-back-1h", "clock −1 h, no restart"},
	{"copy-shared-told", "a VM snapshot, beside its original"},
}

// readmeRows are its rows: the name there, and that of the report.
var readmeRows = [][2]string{
	{"bwmarrin/snowflake", "bwmarrin/snowflake"}, {"sony/sonyflake", "sony/sonyflake"}, {"**tickflake**", "tickflake, default, monoclock, lease"},
}

// readmeTable is the table on top of the README, of the section on a real kernel. It is
// empty if the section has no figures.
func readmeTable(r *results.Report) string {
	for i := range r.Sections {
		s := &r.Sections[i]
		if s.ID != "kernel" || len(s.Table("kernel-duplicates").Rows) == 0 {
			continue
		}
		var b strings.Builder
		b.WriteString("\n|")
		for _, f := range readmeFaults {
			fmt.Fprintf(&b, " | %s", f[1])
		}
		b.WriteString(" |\n|---|" + strings.Repeat("---|", len(readmeFaults)) + "\n")
		for _, row := range readmeRows {
			fmt.Fprintf(&b, "| %s |", row[0])
			for _, f := range readmeFaults {
				said := readmeCell(s, row[1], f[0])
				if strings.HasPrefix(row[0], "**") {
					said = "**" + said + "**"
				}
				fmt.Fprintf(&b, " %s |", said)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\n([Measured](docs/results.md#kernel) on a real kernel, %s, at some hundred IDs per second,\nby `go run ./bench --only kernel`. After the snapshot the copy of tickflake called\n[`Restored`](docs/operate.md#restored-memory). [What each fault does to clocks](docs/kernel.md).)\n\n", s.Table("kernel-run").Cell("kernel", "is").Text)
		return b.String()
	}
	return ""
}

// readmeCell is the worst that a fault did to a generator.
func readmeCell(s *results.Section, who, fault string) string {
	duplicates, stall := s.Table("kernel-duplicates").Cell(who, fault), s.Table("kernel-stall").Cell(who, fault)
	errors := s.Table("kernel-errors").Cell(who, fault)
	switch {
	case len(duplicates.Samples) == 0:
		return results.NotRun
	case duplicates.Samples[0] > 0:
		return duplicates.Text + " duplicate IDs"
	case stall.Median() >= 1:
		return "blocked for " + stall.Text + " or more"
	case errors.Median() > 0:
		return errors.Text + " failed calls"
	}
	return "no duplicate"
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

// writeReadme renews the table on top of the README.
func writeReadme(r *results.Report, name string) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fresh := []byte(withTable(string(old), readmeTable(r)))
	if bytes.Equal(old, fresh) {
		return nil
	}
	return replace(name, fresh)
}
