package main

import (
	"bytes"
	"context"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/internal/cli"
)

// The failure of one section leaves the results of the others.
func TestFailuresStayAtHome(t *testing.T) {
	sections := []measure.Section{
		fake("one"),
		with("panics", func(context.Context, *measure.Run) results.Section { panic("no such server") }),
		with("ends", func(context.Context, *measure.Run) results.Section { runtime.Goexit(); return results.Section{} }),
		with("wrong", func(context.Context, *measure.Run) results.Section {
			return results.Section{Tables: []results.Table{{ID: "wrong", Base: "none"}}}
		}),
		with("again", fake("one").Measure), // with the IDs of another section
		fake("last"),
	}
	got := bench(t, sections)
	assert.Equal(t, cli.Failed, got.code)
	assert.Contains(t, got.err, "4 of 6 sections failed")
	assert.Contains(t, got.err, "runner_test.go", "where it panicked")
	r := got.report(t)
	require.Len(t, r.Sections, 6)
	for i, want := range []string{"", "it failed: panic: no such server", "it failed: its goroutine ended", `the row "none" to compare with is missing`, "is used twice", ""} {
		if want == "" {
			assert.Empty(t, r.Sections[i].Skipped)
			assert.Len(t, r.Sections[i].Tables, 1)
			continue
		}
		assert.Contains(t, r.Sections[i].Skipped, want)
		assert.Empty(t, r.Sections[i].Tables)
	}
	assert.Contains(t, got.out, "skipped: it failed: panic: no such server")
}

func TestInterruptedRunWritesWhatThereIs(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	got := benchIn(t, ctx, clone(t), []measure.Section{
		fake("one"),
		with("two", func(ctx context.Context, run *measure.Run) results.Section {
			interrupt(cli.Interruption{Signal: syscall.SIGINT})
			<-ctx.Done()
			return fake("two").Measure(ctx, run)
		}),
		fake("three"),
	})
	assert.Equal(t, 130, got.code)
	assert.Contains(t, got.err, "interrupt")
	r := got.report(t)
	assert.True(t, r.Interrupted)
	require.Len(t, r.Sections, 3)
	assert.Len(t, r.Sections[1].Tables, 1, "what it had")
	assert.Equal(t, "the run was interrupted before", r.Sections[2].Skipped)
	assert.Contains(t, got.out, "interrupted")
	assert.Contains(t, got.out, "index.html")
}

// A section that takes far too long is told to stop, and the others follow.
func TestSectionThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := virtual(t.Context(), with("slow", func(ctx context.Context, run *measure.Run) results.Section {
			<-ctx.Done()
			return fake("slow").Measure(ctx, run)
		}))
		assert.False(t, report.Sections[0].Failed)
		assert.Len(t, report.Sections[0].Tables, 1)
		assert.Equal(t, []string{"The section was stopped after 2m30s; it was planned for 40s."}, report.Sections[0].Notes)
		assert.False(t, report.Interrupted)
		assert.Len(t, report.Sections[1].Tables, 1)
	})
}

// virtual runs a section in virtual time.
func virtual(ctx context.Context, s measure.Section) *results.Report {
	report := &results.Report{Schema: results.Schema}
	program{err: new(bytes.Buffer)}.measure(ctx, options{}, []measure.Section{s, fake("last")}, report)
	return report
}
