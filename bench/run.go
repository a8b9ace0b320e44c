package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
)

// measure runs the sections, one after the other. The failure of one leaves the results of
// the others. When ctx ends, the sections stop.
func (p program) measure(ctx context.Context, commit string) *report.Report {
	chosen := slices.DeleteFunc(slices.Clone(p.sections), func(s measure.Section) bool { return len(p.only) > 0 && !slices.Contains(p.only, s.ID) })
	r := &report.Report{Command: p.line, Commit: commit, Began: time.Now(), Quick: p.quick, Machine: inspect(), Published: earlier()}
	before := measure.Times()
	for i := range chosen {
		if p.quick {
			chosen[i].Full = chosen[i].Quick
		}
	}
	for i, s := range chosen {
		got := report.Section{Skipped: "the run was interrupted before"}
		if ctx.Err() == nil {
			var left time.Duration
			for _, s := range chosen[i:] {
				left += s.Full
			}
			fmt.Fprintf(p.err, "%d/%d %s: %s (about %s left)\n", i+1, len(chosen), s.ID, s.Title, left)
			runtime.GC() // the garbage of the section before
			before := measure.Times()
			got = p.section(ctx, s)
			got.Stolen = measure.Stolen(before, measure.Times())
		}
		got.ID, got.Title, got.About = s.ID, s.Title, s.About
		r.Sections = append(r.Sections, got)
	}
	r.Interrupted = ctx.Err() != nil
	r.Took = time.Since(r.Began)
	r.Machine.Stolen = measure.Stolen(before, measure.Times())
	return r
}

// section measures one section, for three times its time and three minutes at most: a server that
// hangs must not hang the run, and a busy machine is slow.
func (p program) section(ctx context.Context, s measure.Section) (out report.Section) {
	limit := 3*s.Full + 3*time.Minute
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			fmt.Fprintf(p.err, "bench: section %s failed: panic: %v\n%s\n", s.ID, value, debug.Stack())
			out = report.Section{Failed: true, Skipped: fmt.Sprintf("it failed: panic: %v", value)}
		}
		if limited.Err() != nil && ctx.Err() == nil {
			out.Note("The section was stopped after %v; it was planned for %v.", limit, s.Full)
		}
	}()
	name := fnv.New64a()
	name.Write([]byte(s.ID))
	return s.Measure(limited, &measure.Run{Quick: p.quick, Until: time.Now().Add(s.Full),
		// Alone or among others, a section has the same order.
		Rand: rand.New(rand.NewPCG(p.seed, name.Sum64()))})
}

// inspect looks at the machine. A fact that the system does not tell is empty.
func inspect() report.Machine {
	m := report.Machine{Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + " (" + runtime.GOARCH + ")", Go: runtime.Version(), CPU: "unknown processor"}
	if all, err := cpu.Info(); err == nil && len(all) > 0 && all[0].ModelName != "" {
		m.CPU = strings.Join(strings.Fields(all[0].ModelName), " ")
	}
	if memory, err := mem.VirtualMemory(); err == nil {
		m.MemoryBytes = memory.Total
	}
	if h, err := host.Info(); err == nil {
		m.OS, m.Kernel = fmt.Sprintf("%s %s (%s)", h.Platform, h.PlatformVersion, runtime.GOARCH), h.KernelVersion
		if h.VirtualizationRole == "guest" {
			m.Virtual = h.VirtualizationSystem
		}
	}
	if l, err := load.Avg(); err == nil {
		m.LoadBefore = l.Load1
	}
	// Of Linux; other systems do not tell.
	if source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		m.ClockSource = strings.TrimSpace(string(source))
	}
	return m
}
