package page_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/internal/specimen"
	"github.com/tickflake/tickflake/bench/results/page"
)

// grid is a table as it is shown: the rows below the head, each with its name first.
type grid struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

// checkGrid compares what is shown of a table with its samples. It computes medians
// itself, and takes nothing from the code that it tests.
func checkGrid(t testing.TB, table *results.Table, shown grid) {
	t.Helper()
	require.Len(t, shown.Head, len(table.Columns)+1, table.ID)
	for i, c := range table.Columns {
		assert.True(t, strings.HasPrefix(shown.Head[i+1], c.Title), "%s: column %q is shown as %q", table.ID, c.Title, shown.Head[i+1])
	}
	require.Len(t, shown.Rows, len(table.Rows), table.ID)
	for i, row := range table.Rows {
		require.Len(t, shown.Rows[i], len(table.Columns)+1, "%s: %s", table.ID, row.Name)
		assert.True(t, strings.HasPrefix(shown.Rows[i][0], row.Name), "%s: row %q is shown as %q", table.ID, row.Name, shown.Rows[i][0])
		for k, cell := range row.Cells {
			if err := checkCell(cell, shown.Rows[i][k+1]); err != nil {
				t.Errorf("%s: %s, %s: %v", table.ID, row.Name, table.Columns[k].ID, err)
			}
		}
	}
}

var figure = regexp.MustCompile(`^[-\d,.e]+`)

func checkCell(cell results.Cell, shown string) error {
	for mark, sign := range map[results.Mark]string{results.Good: "✓", results.Bad: "✗"} {
		if has := strings.Contains(shown, sign); has != (cell.Mark == mark) {
			return fmt.Errorf("with mark %q it is shown as %q", cell.Mark, shown)
		}
	}
	bare := strings.TrimLeft(strings.NewReplacer("good:", "", "bad:", "").Replace(shown), "✓✗ ")
	switch {
	case cell.Text != "":
		if !strings.HasPrefix(bare, strings.TrimLeft(cell.Text, "✓✗ ")) {
			return fmt.Errorf("the text %q is shown as %q", cell.Text, shown)
		}
		return nil
	case len(cell.Samples) == 0:
		if bare != "–" {
			return fmt.Errorf("nothing is shown as %q", shown)
		}
		return nil
	}
	sorted := slices.Sorted(slices.Values(cell.Samples))
	n := len(sorted)
	want := (sorted[(n-1)/2] + sorted[n/2]) / 2
	got, err := strconv.ParseFloat(strings.ReplaceAll(figure.FindString(bare), ",", ""), 64)
	if err != nil || math.Abs(got-want) > 0.0005*math.Abs(want) {
		return fmt.Errorf("%v, of which the median is %v, are shown as %q", cell.Samples, want, shown)
	}
	if varies := sorted[0] != sorted[n-1]; varies && n > 1 && !strings.ContainsAny(shown, "±…") {
		return fmt.Errorf("%v are shown as %q, without a margin", cell.Samples, shown)
	}
	return nil
}

var tablePattern = regexp.MustCompile(`(?s)<table id="table-([^"]*)".*?</table>`)

// htmlGrids are the tables of a page, by ID.
func htmlGrids(t testing.TB, text string) map[string]grid {
	grids := map[string]grid{}
	for _, found := range tablePattern.FindAllStringSubmatch(text, -1) {
		var g grid
		var row []string
		var cell strings.Builder
		d := xml.NewDecoder(strings.NewReader(found[0]))
		d.Strict, d.AutoClose, d.Entity = false, append([]string{"wbr"}, xml.HTMLAutoClose...), xml.HTMLEntity
		in := false
		for {
			token, err := d.Token()
			if token == nil {
				break
			}
			require.NoError(t, err)
			switch token := token.(type) {
			case xml.StartElement:
				switch token.Name.Local {
				case "tr":
					row = nil
				case "th", "td":
					in = true
					cell.Reset()
				}
			case xml.EndElement:
				switch token.Name.Local {
				case "th", "td":
					in = false
					row = append(row, strings.Join(strings.Fields(cell.String()), " "))
				case "thead":
					g.Head, row = row, nil
				case "tr":
					if g.Head != nil {
						g.Rows = append(g.Rows, row)
					}
				}
			case xml.CharData:
				if in {
					cell.Write(token)
				}
			}
		}
		grids[found[1]] = g
	}
	return grids
}

var anchorPattern = regexp.MustCompile(`(?s)<a id="table-([^"]*)"></a>.*?\n(\|.*?)\n\n`)

// markdownGrids are the tables of a text, by ID.
func markdownGrids(text string) map[string]grid {
	unescape := strings.NewReplacer(`\\`, `\`, `\|`, "|", `\*`, "*", `\_`, "_", `\[`, "[", `\]`, "]", "&lt;", "<", `\~`, "~")
	grids := map[string]grid{}
	for _, found := range anchorPattern.FindAllStringSubmatch(text, -1) {
		var g grid
		for i, line := range strings.Split(found[2], "\n") {
			var row []string
			line = strings.ReplaceAll(line, `\|`, "\x00")
			for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
				row = append(row, unescape.Replace(strings.ReplaceAll(strings.TrimSpace(cell), "\x00", `\|`)))
			}
			switch i {
			case 0:
				g.Head = row
			case 1: // the rule
			default:
				g.Rows = append(g.Rows, row)
			}
		}
		grids[found[1]] = g
	}
	return grids
}

// checkAll compares all tables of a report with what is shown.
func checkAll(t testing.TB, r *results.Report, grids map[string]grid) {
	n := 0
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			table := &r.Sections[i].Tables[k]
			require.Contains(t, grids, table.ID)
			checkGrid(t, table, grids[table.ID])
			n++
		}
	}
	require.Len(t, grids, n, "tables that the report does not have")
	require.Positive(t, n)
}

func html(t testing.TB, r *results.Report) string {
	var out bytes.Buffer
	require.NoError(t, page.HTML(&out, r))
	return out.String()
}

func markdown(t testing.TB, r *results.Report) string {
	var out bytes.Buffer
	require.NoError(t, page.Markdown(&out, r, "charts"))
	return out.String()
}

func TestTablesMatchTheSamples(t *testing.T) {
	for seed := range uint64(3) {
		r := specimen.Report(seed)
		checkAll(t, r, htmlGrids(t, html(t, r)))
		checkAll(t, r, markdownGrids(markdown(t, r)))
	}
}

// The check itself must find what is wrong.
func TestCheckCellFindsErrors(t *testing.T) {
	cell := results.Cell{Samples: []float64{10, 12, 11}}
	assert.NoError(t, checkCell(cell, "11 ±9.1%"))
	assert.Error(t, checkCell(cell, "11"))
	assert.Error(t, checkCell(cell, "12 ±9.1%"))
	assert.Error(t, checkCell(cell, "✓ 11 ±9.1%"))
	assert.Error(t, checkCell(results.Cell{}, "0"))
	assert.Error(t, checkCell(results.Cell{Text: "kept", Mark: results.Good}, "kept"))
	assert.Error(t, checkCell(results.Cell{Text: "kept"}, "lost"))
}
