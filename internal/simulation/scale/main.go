// Command scale simulates large fleets of keepers on one store, in virtual time, and writes
// the tables of docs/scale.md:
//
//	go run ./internal/simulation/scale              # all fleets: about an hour, 16 GB
//	go run ./internal/simulation/scale -nodes 1024  # the table of one fleet: a second
//
// A keeper has no goroutine here. It is the machine of the real keepers, and waits by their functions;
// a test runs 1,024 node numbers with real keepers on the same store.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// plans are the fleets of the page.
var plans = []plan{
	{nodes: 1 << 10, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 12, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 12, window: 5 * time.Minute, serves: 1216, seed: 1},
	{nodes: 1 << 16, window: 30 * time.Second, seed: 1},
	{nodes: 1 << 20, window: 30 * time.Second, seed: 1, brief: true},
	{nodes: 1 << 22, window: 30 * time.Second, seed: 1, brief: true}, // 16 GB of memory
}

func main() {
	file := flag.String("file", "docs/scale.md", "the page to write")
	nodes := flag.Int("nodes", 0, "the only fleet to simulate, by its node numbers; 0 for all")
	flag.Parse()
	debug.SetMemoryLimit(16 << 30) // of the largest fleet, 10 GB are in use
	if err := rewrite(*file, *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// rewrite replaces the tables of a page.
func rewrite(file string, nodes int) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if nodes == 0 || p.nodes == nodes {
			if page, err = replace(page, p, table(p, simulate(p))); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(file, page, 0o644)
}

// replace puts the table of a plan between its marks.
func replace(page []byte, p plan, text string) ([]byte, error) {
	from, to, err := find(page, p)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{page[:from], []byte(text), page[to:]}, nil), nil
}

// find returns where the table of a plan begins and ends.
func find(page []byte, p plan) (from, to int, err error) {
	name := fmt.Sprintf("%d %s", p.nodes, p.window)
	begin, end := []byte("<!-- scale "+name+" -->\n"), []byte("<!-- end of scale "+name+" -->")
	from, to = bytes.Index(page, begin)+len(begin), bytes.Index(page, end)
	if from < len(begin) || to < from {
		return 0, 0, fmt.Errorf("the page has no marks %q and %q in this order", begin, end)
	}
	return from, to, nil
}

// table shows the figures of a plan.
func table(p plan, f figures) string {
	var b bytes.Buffer
	line := func(name, text string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, fmt.Sprintf(text, args...))
	}
	times := func(peak float64) string { return fmt.Sprintf("%s, %.2f×", count(peak), peak/f.Rest) }
	fmt.Fprintf(&b, "| %s node numbers, %s processes, window of %s | |\n|---|---:|\n", count(float64(p.nodes)), count(float64(p.processes())), p.window)
	line("the store serves, operations per second", "%s", count(float64(p.capacity())))
	line("writes per second at rest", "%s", count(f.Rest))
	line("99% of the processes start at once: all issue after", "%.1f s", f.Start)
	line("the last 1% start at once, and 99% of the numbers are taken then: all issue after", "%.1f s", f.Last)
	line("round trips of their claims: median, 99 of 100", "%d, %d", f.Trips, f.TripsMost)
	line("after 10 minutes of refused requests: most writes in a second, × the rate at rest", "%s", times(f.AfterPeak[0]))
	line("all issue again after", "%s", seconds(f.AfterSeconds[0]))
	if !p.brief {
		line("after 10 minutes without answers: most writes in a second, × the rate at rest", "%s", times(f.AfterPeak[1]))
		line("all issue again after", "%s", seconds(f.AfterSeconds[1]))
		line(fmt.Sprintf("rolling restart, 1%% per %s: most writes in a second, × the rate at rest", time.Duration(p.unit())), "%s", times(f.RestartPeak))
		line("all issue after the last batch after", "%.1f s", f.Restart)
	}
	return b.String()
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
