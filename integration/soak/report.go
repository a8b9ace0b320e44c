//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
)

// Report is the result of a soak.
type Report struct {
	Seed    uint64         `json:"seed"`
	Seconds float64        `json:"seconds"`
	Fleets  []Fleet        `json:"fleets"`
	Sizes   []Growth       `json:"processes"`
	Broken  []fleet.Broken `json:"broken"` // promises
}

// Fleet is the result of one fleet.
type Fleet struct {
	Store      servers.Kind     `json:"store"`
	Served     int64            `json:"served"` // calls
	Failed     int64            `json:"failed"` // calls
	IDs        int64            `json:"ids"`
	Numbers    int64            `json:"numbers"`
	Faults     map[string]int64 `json:"faults"`     // by kind
	Twice      int64            `json:"twice"`      // IDs and numbers that came again
	Disordered int64            `json:"disordered"` // IDs and numbers out of order
	Clients    []fleet.Client   `json:"clients"`
}

// Growth is the size of a process at the start and at the end.
type Growth struct {
	Process string     `json:"process"`
	Start   fleet.Size `json:"start"`
	End     fleet.Size `json:"end"`
}

// Most by which a process may grow. They leave room for the collector's moods and for
// connections that are made again; one leak per fault of an hour would be more.
const (
	mostBytes      = 64 << 20
	mostGoroutines = 256
	mostFiles      = 64
	// The ledgers of the soak keep each call, in up to four parts.
	bytesOfCall = 4 * 2 * 48
)

// soakItself is the name of the soak's own process.
const soakItself = "soak"

// sizes returns the sizes of all servers, of etcd and of this process.
func sizes(fleets []*fleet.Fleet) []fleet.Size {
	own := sizeOf(soakItself, os.Getpid())
	own.Goroutines = int64(runtime.NumGoroutine())
	all := []fleet.Size{own}
	for _, f := range fleets {
		for _, m := range f.Members {
			s := m.Size(context.Background())
			s.Process = fmt.Sprintf("%s server %d", f.Store.Kind, m.Index)
			all = append(all, s)
		}
		if f.Store.Process != nil {
			all = append(all, sizeOf(string(f.Store.Kind), f.Store.PID()))
		}
	}
	return all
}

// sizeOf reads the size of a process. It has zeros if the process is not there, as between a
// kill and the next start.
func sizeOf(name string, pid int) fleet.Size {
	s := fleet.Size{Process: name, PID: pid}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		s.RSS = pages * int64(os.Getpagesize())
	}
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	s.Files = int64(len(files))
	return s
}

// newFleet counts what a fleet has done so far.
func newFleet(f *fleet.Fleet) Fleet {
	one := Fleet{Store: f.Store.Kind, Faults: f.Disturbed(), Twice: f.Times(fleet.Unique), Disordered: f.Times(fleet.InOrder)}
	for _, w := range f.Clients {
		c := w.Count()
		one.Served += c.Served
		one.Failed += c.Failed
		one.IDs += c.IDs
		one.Numbers += c.Numbers
		one.Clients = append(one.Clients, c)
	}
	return one
}

func (f Fleet) String() string {
	var faults int64
	worst := 0.0
	for _, n := range f.Faults {
		faults += n
	}
	for _, c := range f.Clients {
		for _, s := range c.Stalls {
			worst = max(worst, s.Seconds)
		}
	}
	return fmt.Sprintf("%s: %d calls for %d IDs and %d numbers, %d faults, %d failed, %d twice, %d out of order, worst stall %.1fs",
		f.Store, f.Served, f.IDs, f.Numbers, faults, f.Failed, f.Twice, f.Disordered, worst)
}

func newReport(s settings, fleets []*fleet.Fleet, start, end []fleet.Size, length time.Duration) *Report {
	r := &Report{Seed: s.seed, Seconds: length.Seconds(), Broken: []fleet.Broken{}}
	var served int64
	for _, f := range fleets {
		r.Fleets = append(r.Fleets, newFleet(f))
		r.Broken = append(r.Broken, f.Broken()...)
		served += r.Fleets[len(r.Fleets)-1].Served
	}
	for i, after := range end {
		g := Growth{Process: after.Process, End: after}
		if i < len(start) { // it is empty after an early end
			g.Start = start[i]
			if grown := g.beyond(served); len(grown) > 0 {
				r.Broken = append(r.Broken, fleet.Broken{Promise: fleet.Bounded, Count: int64(len(grown)), Examples: grown})
			}
		}
		r.Sizes = append(r.Sizes, g)
	}
	return r
}

// beyond says how the process has grown more than it may after so many calls.
func (g Growth) beyond(served int64) (how []string) {
	if g.Start.RSS == 0 || slices.Contains(stores, servers.Kind(g.Process)) { // it was being started again, or is a store
		return nil
	}
	bytes := int64(mostBytes)
	if g.Process == soakItself {
		bytes += served * bytesOfCall
	}
	for _, one := range []struct {
		what             string
		start, end, most int64
	}{
		{"bytes of memory", g.Start.RSS, g.End.RSS, bytes},
		{"goroutines", g.Start.Goroutines, g.End.Goroutines, mostGoroutines},
		{"files", g.Start.Files, g.End.Files, mostFiles},
	} {
		if one.end > one.start+one.most {
			how = append(how, fmt.Sprintf("%s had %d %s, and has %d at the end: more than %d more", g.Process, one.start, one.what, one.end, one.most))
		}
	}
	return how
}

// print writes a line for each fleet and each broken promise. The JSON has the rest.
func (r *Report) print(out io.Writer) {
	fmt.Fprintf(out, "seed %d, %s\n", r.Seed, time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	for _, f := range r.Fleets {
		fmt.Fprintln(out, f)
	}
	for _, b := range r.Broken {
		fmt.Fprintln(out, b)
	}
	if len(r.Broken) == 0 {
		fmt.Fprintln(out, "all promises hold")
	}
}
