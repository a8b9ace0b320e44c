package kernel_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/mutants"
)

// badFaults are faults that go wrong in all ways.
var badFaults = []guest.Fault{
	{Name: "test-hangs", Limit: time.Second, Run: func(*guest.Stage) { select {} }},
	{Name: "test-crashes", Run: func(*guest.Stage) {
		panic(errors.Join(os.WriteFile("/proc/sys/kernel/sysrq", []byte("1"), 0), os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)))
	}},
	{Name: "test-panics", Run: func(*guest.Stage) { panic("for the test") }},
}

// A fault that goes wrong is an error with the cause, and the other faults are run.
func TestFaultsThatGoWrong(t *testing.T) {
	if !*kernel.AllFlag {
		t.Skip("only with -kernel.all: it boots four machines")
	}
	kernel.Needs(t)
	o := kernel.Options{Subjects: []string{mutants.Control}, Faults: []string{"none"}, Log: *kernel.LogFlag}
	for _, f := range badFaults {
		o.Faults = append(o.Faults, f.Name)
	}
	o.Progress = func(fault, text string) { t.Log(fault, text) }
	r, err := kernel.Run(t.Context(), o)
	require.ErrorContains(t, err, "test-hangs: the machine hangs, and was ended")
	require.ErrorContains(t, err, "test-crashes: the machine has ended")
	require.ErrorContains(t, err, "sysrq triggered crash")
	require.ErrorContains(t, err, "the fault panicked: for the test")
	require.Len(t, r.Rows, 1)
	require.Positive(t, r.Rows[0].Verdict.IDs)
	require.Empty(t, r.Rows[0].Broken)
}

// Ctrl-C ends a run at once.
func TestEndOfRun(t *testing.T) {
	if !*kernel.AllFlag {
		t.Skip("only with -kernel.all: it boots a machine")
	}
	kernel.Needs(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("for the test")
	_, err := kernel.Run(ctx, kernel.Options{Faults: []string{"none"}, Subjects: []string{mutants.Control}, Progress: func(_, text string) {
		if text == "begins" {
			cancel(cause)
		}
	}})
	require.ErrorIs(t, err, cause)
}

func TestUnknownNames(t *testing.T) {
	kernel.Needs(t)
	_, err := kernel.Run(t.Context(), kernel.Options{Faults: []string{"step-back-1s", "step-bakc"}})
	require.EqualError(t, err, `there is no fault "step-bakc"`)
	_, err = kernel.Run(t.Context(), kernel.Options{Subjects: []string{"sno"}})
	require.EqualError(t, err, `there is no subject "sno"`)
}
