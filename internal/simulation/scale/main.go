// Command scale simulates large fleets of keepers on one store, in virtual time, and writes
// the table of docs/scale.md: about a minute.
//
//	go run ./internal/simulation/scale
//
// A keeper has no goroutine here. It is the machine of the real keepers, and waits by their functions;
// a test runs 1,024 node numbers with real keepers on the same store.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// plans are the fleets of the page, a column each.
var plans = []plan{
	{nodes: 1 << 10, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 12, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 16, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 12, window: 5 * time.Minute, serves: 1216, seed: 1},
}

// The table stands between them.
const (
	begin = "<!-- scale -->\n"
	end   = "<!-- end of scale -->"
)

func main() {
	file := flag.String("file", "docs/scale.md", "the page to write")
	flag.Parse()
	if err := rewrite(*file); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// rewrite replaces the table of a page.
func rewrite(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("the page has no marks %q and %q in this order", begin, end)
	}
	var columns [][]string
	for _, p := range plans {
		columns = append(columns, column(p, simulate(p)))
	}
	var table strings.Builder
	for row, name := range rows {
		fmt.Fprintf(&table, "| %s |", name)
		for _, c := range columns {
			fmt.Fprintf(&table, " %s |", c[row])
		}
		table.WriteByte('\n')
		if row == 0 {
			table.WriteString("|---|" + strings.Repeat("---:|", len(columns)) + "\n")
		}
	}
	return os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644)
}

// rows are the names of what column returns.
var rows = []string{
	"node numbers, window",
	"processes",
	"the store serves, operations per second",
	"writes per second at rest",
	"99% of the processes start at once: all issue after",
	"the last 1% start at once, and 99% of the numbers are taken then: all issue after",
	"round trips of their claims: median, 99 of 100",
	"after 10 minutes of refused requests: most writes in a second, × the rate at rest",
	"all issue again after",
	"after 10 minutes without answers: most writes in a second, × the rate at rest",
	"all issue again after",
	"rolling restart, 1% at a time: most writes in a second, × the rate at rest",
	"all issue after the last batch after",
}

// column has the figures of a plan, one for each of rows.
func column(p plan, f figures) []string {
	times := func(peak float64) string { return fmt.Sprintf("%s, %.2f×", count(peak), peak/f.Rest) }
	return []string{
		fmt.Sprintf("%s, %s", count(float64(p.nodes)), p.window),
		count(float64(p.processes())),
		count(float64(p.capacity())),
		count(f.Rest),
		fmt.Sprintf("%.1f s", f.Start),
		fmt.Sprintf("%.1f s", f.Last),
		fmt.Sprintf("%d, %d", f.Trips, f.TripsMost),
		times(f.AfterPeak[0]), seconds(f.AfterSeconds[0]),
		times(f.AfterPeak[1]), seconds(f.AfterSeconds[1]),
		times(f.RestartPeak), fmt.Sprintf("%.1f s", f.Restart),
	}
}

func seconds(x float64) string {
	if math.IsInf(x, 1) {
		return "not within two thirds of a window"
	}
	return fmt.Sprintf("%.1f s", x)
}

// count is a number with commas, and one decimal if it is small.
func count(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	text := strconv.FormatInt(int64(x+0.5), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
