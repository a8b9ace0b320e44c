package realkernel

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/page"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

func TestMain(m *testing.M) {
	kernel.Main()
	os.Exit(m.Run())
}

// The made-up run: three generators, four faults, of which one cannot be run.
func madeUp() kernel.Report {
	ours := func(fault string, v kernel.Verdict) kernel.Row {
		v.IDs += 1000
		return kernel.Row{Fault: fault, Subject: "default", Group: kernel.Ours, Verdict: v}
	}
	peer := func(fault, subject string, v kernel.Verdict) kernel.Row {
		return kernel.Row{Fault: fault, Subject: subject, Group: kernel.Peers, Verdict: v}
	}
	clone := ours("clone", kernel.Verdict{Duplicates: 30})
	clone.Known = "restored without the call: at most one window"
	stopped := peer("clone", "peer/b", kernel.Verdict{})
	stopped.Skipped = "it has no state"
	late := peer("kill", "peer/b", kernel.Verdict{Disorder: 4})
	late.Broken = []string{"4 IDs out of order, and its README promises order"}
	return kernel.Report{Kernel: "Linux 6.1.0-test", QEMU: "QEMU 7.2", Rows: []kernel.Row{
		ours("step", kernel.Verdict{}), peer("step", "peer/a", kernel.Verdict{Duplicates: 1004, Disorder: 7}), peer("step", "peer/b", kernel.Verdict{Failed: 12, Error: "too early"}),
		ours("kill", kernel.Verdict{Stall: 99 * time.Millisecond}), peer("kill", "peer/a", kernel.Verdict{Stall: 2 * time.Second}), late,
		clone, peer("clone", "peer/a", kernel.Verdict{Lead: time.Hour}), stopped,
	}, Clocks: []kernel.Clock{{Fault: "step", Host: 3 * time.Second, Realtime: 2 * time.Second, Monotonic: 3*time.Second + 20*time.Millisecond, Boottime: 3 * time.Second, Raw: 3 * time.Second,
		Steps: 1, Back: time.Second, When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Note: "one step"}},
		Skipped: []kernel.Skip{{Fault: "nfs", Why: "no server of NFS"}}}
}

func madeUpFaults() []kernel.Fault {
	return []kernel.Fault{{Name: "step", About: "the clock is stepped", Kind: kernel.Clocks}, {Name: "kill", About: "killed", Kind: kernel.Processes},
		{Name: "clone", About: "copied", Kind: kernel.Copies}, {Name: "nfs", About: "a disk of NFS", Kind: kernel.Disks}}
}

func madeUpSubjects() []kernel.SubjectInfo {
	return []kernel.SubjectInfo{{Name: "default", Group: kernel.Ours, How: "generator.Open"}, {Name: "peer/a", Group: kernel.Peers, How: "a.New()"},
		{Name: "peer/b", Group: kernel.Peers, How: "b.New()"}, {Name: "mutant", Group: kernel.Mutants}}
}

func fake(report kernel.Report, err error) bench {
	return bench{find: func() (kernel.Kernel, error) { return kernel.Kernel{}, nil },
		run:    func(context.Context, kernel.Options) (kernel.Report, error) { return report, err },
		faults: madeUpFaults, subjects: madeUpSubjects}
}

func measured(t *testing.T, b bench) results.Section {
	s := b.measure(t.Context(), &measure.Run{Rand: rand.New(rand.NewPCG(1, 2))})
	s.ID, s.Title = "kernel", "On a real kernel"
	require.NoError(t, (&results.Report{Schema: results.Schema, Sections: []results.Section{s}}).Check())
	return s
}

func TestSection(t *testing.T) {
	s := measured(t, fake(madeUp(), nil))
	cells := func(table, row string) (all []string) {
		for _, c := range s.Table(table).Columns {
			all = append(all, s.Table(table).Cell(row, c.ID).Value())
		}
		return all
	}
	assert.Equal(t, []string{"✓"}, cells("kernel-card-clock", "tickflake, default"))
	assert.Equal(t, []string{"✗ 1,004 dup"}, cells("kernel-card-clock", "peer/a"))
	assert.Equal(t, []string{"12 err"}, cells("kernel-card-clock", "peer/b"))
	assert.Equal(t, []string{"✓"}, cells("kernel-card-process", "tickflake, default"), "a stall of less than the noise")
	assert.Equal(t, []string{"stall 2 s"}, cells("kernel-card-process", "peer/a"))
	assert.Equal(t, []string{"✗ 4 disorder"}, cells("kernel-card-process", "peer/b"))
	assert.Equal(t, []string{"✗ 30 dup*"}, cells("kernel-card-copy", "tickflake, default"))
	assert.Equal(t, []string{"lead 1 h"}, cells("kernel-card-copy", "peer/a"))
	assert.Equal(t, []string{"–"}, cells("kernel-card-copy", "peer/b"))
	assert.Empty(t, s.Table("kernel-card-disk").Rows, "no disk fault was run")
	assert.Equal(t, []string{"3 s", "−1 s", "+20 ms", "0", "6,667", "1", "1 s", "0", "stepped at 03:04:05.000; one step"}, cells("kernel-clocks", "step"))
	assert.Equal(t, []string{"0", "1,004", "0"}, []string{s.Table("kernel-duplicates").Cell("tickflake, default", "kill").Text,
		s.Table("kernel-duplicates").Cell("peer/a", "step").Text, s.Table("kernel-duplicates").Cell("peer/b", "kill").Text})
	assert.Equal(t, []string{"tickflake, default", "restored without the call: at most one window"}, cells("kernel-known", "clone"))
	assert.Equal(t, []string{"peer/b", "4 IDs out of order, and its README promises order"}, cells("kernel-broken", "kill"))
	assert.Equal(t, []string{"peer/b", "too early"}, cells("kernel-error", "step"))
	assert.Equal(t, []string{"b.New()", "clone: it has no state"}, cells("kernel-how", "peer/b"))
	assert.Equal(t, []string{"copied"}, cells("kernel-list", "clone"))
	assert.Equal(t, []string{"The fault nfs was not run: no server of NFS."}, s.Notes)
	assert.Equal(t, []string{"Linux 6.1.0-test"}, cells("kernel-run", "kernel"))
	assert.Equal(t, []string{"2", "0", "1", "0"}, cells("kernel-summary", "tickflake, default"))
	assert.Equal(t, []string{"0", "1", "1", "1"}, cells("kernel-summary", "peer/b"))
	assert.Equal(t, "On Linux 6.1.0-test, tickflake issues no ID twice, but for the documented exception clone; peer/a does in some faults.", verdict(s))

	var text strings.Builder
	r := &results.Report{Schema: results.Schema, Sections: []results.Section{s}}
	require.NoError(t, page.HTML(&text, r))
	require.NoError(t, page.Markdown(&text, r, "charts"))
	assert.Contains(t, text.String(), "✗ 1,004 dup")
}

// Our rows decide the targets, and each can be missed.
func TestTargets(t *testing.T) {
	state := func(spoil func(*kernel.Report)) (all []results.State, why string) {
		report := madeUp()
		report.Rows = append(report.Rows, kernel.Row{Fault: "nfs", Subject: "directory store, 6 processes", Group: kernel.Ours})
		spoil(&report)
		for _, target := range measured(t, fake(report, nil)).Targets {
			all = append(all, target.State())
			why = target.Why
		}
		return all, why
	}
	met, missed, open := results.Met, results.Missed, results.Open
	for _, tt := range []struct {
		name  string
		spoil func(*kernel.Report)
		want  []results.State
	}{
		{"sound", func(*kernel.Report) {}, []results.State{met, met, met}},
		{"a duplicate", func(r *kernel.Report) { r.Rows[0].Verdict.Duplicates = 1 }, []results.State{missed, met, met}},
		{"the exception is not documented", func(r *kernel.Report) { r.Rows[6].Known = "" }, []results.State{missed, met, met}},
		{"disorder", func(r *kernel.Report) { r.Rows[3].Verdict.Disorder = 1 }, []results.State{met, missed, met}},
		{"a promise", func(r *kernel.Report) { r.Rows[3].Broken = []string{"waited 2 s, bound 1 s"} }, []results.State{met, met, missed}},
		{"of a peer", func(r *kernel.Report) { r.Rows[1].Broken = []string{"waited 2 s, bound 1 s"} }, []results.State{met, met, met}},
		{"faults are missing", func(r *kernel.Report) { r.Rows = r.Rows[:3] }, []results.State{open, open, open}},
		{"few faults are enough for a miss", func(r *kernel.Report) { r.Rows = r.Rows[:1]; r.Rows[0].Verdict.Disorder = 1 }, []results.State{open, missed, open}},
		{"nothing of ours", func(r *kernel.Report) { r.Rows = r.Rows[1:3] }, []results.State{open, open, open}},
	} {
		got, _ := state(tt.spoil)
		assert.Equal(t, tt.want, got, tt.name)
	}
	report := madeUp()
	report.Rows = append(report.Rows, kernel.Row{Fault: "nfs", Subject: "directory store, 6 processes", Group: kernel.Ours, Note: "900 acknowledged writes"})
	s := measured(t, fake(report, nil))
	assert.Equal(t, "✓", s.Table("kernel-card-disk").Cell("tickflake, directory store, 6 processes", "nfs").Text, "a subject of one fault")
	assert.Equal(t, "900 acknowledged writes", s.Table("kernel-counts").Cell("nfs", "what").Text)
	_, why := state(func(r *kernel.Report) { r.Rows[3].Broken = []string{"waited 2 s, bound 1 s"} })
	assert.Equal(t, "kill, default: waited 2 s, bound 1 s", why)
}
