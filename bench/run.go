package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
)

// measure runs the sections, one after the other. The failure of one leaves the results of
// the others. When ctx ends, the sections stop.
func (p command) measure(ctx context.Context, commit string) *report.Report {
	chosen := slices.DeleteFunc(slices.Clone(p.sections), func(s measure.Section) bool { return len(p.only) > 0 && !slices.Contains(p.only, s.ID) })
	r := &report.Report{Command: p.line, Commit: commit, Quick: p.quick, Published: earlier(), Cores: runtime.GOMAXPROCS(0)}
	began, before := time.Now(), measure.Times()
	for i, s := range chosen {
		if p.quick {
			s.Full = s.Quick
		}
		got := report.Section{Skipped: "the run was interrupted before"}
		if ctx.Err() == nil {
			fmt.Fprintf(p.err, "%d/%d %s: %s (about %s)\n", i+1, len(chosen), s.ID, s.Title, s.Full)
			runtime.GC() // the garbage of the section before
			before := measure.Times()
			got = p.section(ctx, s)
			got.Stolen = measure.Stolen(before, measure.Times())
		}
		got.ID, got.Title, got.About = s.ID, s.Title, s.About
		r.Sections = append(r.Sections, got)
	}
	r.Interrupted = ctx.Err() != nil
	r.CPU, r.Facts = inspect()
	r.Facts = append([][2]string{{"Commit", commit},
		{"Run", fmt.Sprintf("%s, %s, by `%s`", began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(began).Round(time.Second), p.line)},
		{"Stolen", fmt.Sprintf("%.1f%% of the processors' time, by the hypervisor", measure.Stolen(before, measure.Times()))}}, r.Facts...)
	return r
}

// section measures one section, for three times its time and three minutes at most: a server that
// hangs must not hang the run, and a busy machine is slow.
func (p command) section(ctx context.Context, s measure.Section) (out report.Section) {
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
	return s.Measure(limited, &measure.Run{Quick: p.quick, Until: time.Now().Add(s.Full), Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
}

// inspect looks at the machine. What the system does not tell is left out.
func inspect() (processor string, facts [][2]string) {
	system := runtime.GOOS + " (" + runtime.GOARCH + ")"
	if all, err := cpu.Info(); err == nil && len(all) > 0 {
		processor = strings.Join(strings.Fields(all[0].ModelName), " ")
	}
	if h, err := host.Info(); err == nil {
		system = fmt.Sprintf("%s %s (%s), kernel %s", h.Platform, h.PlatformVersion, runtime.GOARCH, h.KernelVersion)
		if h.VirtualizationRole == "guest" {
			system += ", under " + h.VirtualizationSystem
		}
	}
	facts = [][2]string{{"Machine", cmp.Or(processor, "unknown processor") + ", " + report.Count(runtime.GOMAXPROCS(0), "core")}, {"System", system}, {"Go", runtime.Version()}}
	return processor, facts
}
