package kernel_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
	"github.com/tickflake/tickflake/chaos_test/kernel/mutants"
)

func TestMain(m *testing.M) {
	subject.Add(subjects()...)
	kernel.Main()
	os.Exit(m.Run())
}

// run runs faults, and tells on standard error how far it is.
func run(t *testing.T, o kernel.Options) kernel.Report {
	t.Helper()
	kernel.Needs(t)
	begin := time.Now()
	o.Seed, o.Cuts, o.Log = uint64(begin.UnixNano()), *kernel.CutsFlag, *kernel.LogFlag
	if o.Kills == 0 {
		o.Kills = *kernel.KillsFlag
	}
	t.Logf("seed %d", o.Seed)
	o.Progress = func(fault, text string) {
		fmt.Fprintf(os.Stderr, "%5.1fs %s: %s\n", time.Since(begin).Seconds(), fault, text)
	}
	r, err := kernel.Run(t.Context(), o)
	assert.NoError(t, err) // the report has the other faults
	t.Logf("%s, QEMU %s, %v", r.Kernel, r.QEMU, time.Since(begin))
	return r
}

// fast are the faults of a plain go test. One machine runs them in a few seconds.
var fast = []string{"none", "step-back-1s"}

// TestFaults shows that our generators keep their promises.
func TestFaults(t *testing.T) {
	o := kernel.Options{Groups: []kernel.Group{kernel.Ours, kernel.Peers}, Faults: fast}
	chosen := *kernel.AllFlag || *kernel.FaultFlag != ""
	if chosen {
		o.Groups, o.Faults = nil, nil
	}
	if *kernel.FaultFlag != "" {
		o.Faults = []string{*kernel.FaultFlag}
	}
	r := run(t, o)
	// A busy host slows an emulated machine down, now here, now there. A call that is slow by
	// itself is so again.
	again := o
	again.Faults = nil
	for _, row := range r.Rows {
		if row.Group == kernel.Ours && slices.ContainsFunc(row.Broken, isStall) && !slices.Contains(again.Faults, row.Fault) {
			again.Faults = append(again.Faults, row.Fault)
		}
	}
	if len(again.Faults) > 0 {
		t.Logf("once more, since calls took long: %s", again.Faults)
		r.Rows = slices.DeleteFunc(r.Rows, func(row kernel.Row) bool { return slices.Contains(again.Faults, row.Fault) })
		r.Rows = append(r.Rows, run(t, again).Rows...)
	}
	for _, f := range kernel.Faults() {
		if len(o.Faults) > 0 && !slices.Contains(o.Faults, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) { check(t, r, f) })
	}
}

func isStall(promise string) bool { return strings.HasPrefix(promise, "a call took") }

// check looks at the rows of a fault.
func check(t *testing.T, r kernel.Report, f kernel.Fault) {
	if i := slices.IndexFunc(r.Skipped, func(s kernel.Skip) bool { return s.Fault == f.Name }); i >= 0 {
		if os.Getenv("TICKFLAKE_REQUIRE_SERVERS") != "" {
			t.Fatal(r.Skipped[i].Why)
		}
		t.Skip(r.Skipped[i].Why)
	}
	ours := 0
	for _, row := range r.Rows {
		if row.Fault != f.Name || row.Skipped != "" {
			continue
		}
		v := row.Verdict
		t.Logf("%-40s %7d IDs, %d duplicates, %d disorder, %d failed, stall %v, lead %v, recovery %v %s %s %v",
			row.Subject, v.IDs, v.Duplicates, v.Disorder, v.Failed, v.Stall, v.Lead, v.Recovery, v.Error, row.Known, row.Broken)
		if row.Group == kernel.Ours {
			ours++
		}
		// A promise that another generator breaks is a finding of the report.
		if row.Group == kernel.Ours || row.Subject == mutants.Control {
			assert.Empty(t, row.Broken, "%s under %s", row.Subject, row.Fault)
		}
	}
	require.Positive(t, ours, "no generator of ours met the fault")
}
