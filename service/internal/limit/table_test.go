package limit

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into the page")

// The page has the table as it is here.
func TestTable(t *testing.T) {
	const page, head = "../../../docs/service.md", "| of | limit | at most | beyond |\n|---|---|---|---|\n"
	var table strings.Builder
	for _, row := range Table {
		table.WriteString("| " + strings.Join([]string{row.Whom, row.What, row.Most, row.Why}, " | ") + " |\n")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	was, after, _ := strings.Cut(rest, "\n\n")
	if want := before + head + table.String() + "\n" + after; *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !found || was+"\n" != table.String() {
		t.Errorf("%s has\n%s\nwant\n%s\ngo test ./service/internal/limit -update", page, was, table.String())
	}
}
