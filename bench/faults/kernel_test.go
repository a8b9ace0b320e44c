package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// The tables count what came twice, and say where, and what a step back has cost.
func TestOfKernel(t *testing.T) {
	row := func(fault, subject string, group kernel.Group, v kernel.Verdict) kernel.Row {
		return kernel.Row{Fault: fault, Subject: subject, Group: group, Verdict: v, Known: "a copy is not told"}
	}
	s := ofKernel(kernel.Report{Kernel: "Linux 6.1", Rows: []kernel.Row{
		row("restart-back-1s", "rs/xid", kernel.Peers, kernel.Verdict{IDs: 2000, Duplicates: 2}),
		row("restart-back-1s", "default, monoclock, lease", kernel.Ours, kernel.Verdict{IDs: 2100}),
		row(stepBack, "rs/xid", kernel.Peers, kernel.Verdict{IDs: 11, Stall: generatortest.Seconds(2 * time.Second)}),
		row("copy-shared", "rs/xid", kernel.Peers, kernel.Verdict{IDs: 8042, Duplicates: 1571}),
		row("copy-shared", "default, monoclock, lease", kernel.Ours, kernel.Verdict{IDs: 8100, Duplicates: 10}),
	}}, 3)
	all, answer := s.Table("kernel"), s.Table("kernel-answer")
	for _, want := range [][3]string{
		{"rs/xid", "twice", "1,573: restarts after a step back and copies of the machine"},
		{"rs/xid", "step", "calls blocked until the clock is back (watched for 2 s)"}, {"rs/xid", "runs", "3"}, {"rs/xid", "ids", "10,053"},
		{withStore, "twice", "10: copies of the machine without VMClock or `Restored`"},
	} {
		assert.Equal(t, want[2], all.Cell(want[0], want[1]).String())
	}
	assert.Equal(t, "10 duplicate IDs", answer.Cell("tickflake, `generator.Open`, and nothing tells the copy", "copy-shared").Text)
	assert.Contains(t, all.Verdict, "tickflake issues no ID twice, except in copies of the machine")
	assert.Contains(t, all.Verdict, "Of the peers, 1 of 1 do")
	for _, target := range s.Targets {
		assert.Equal(t, report.Met, target.State(), target.ID)
	}
}
