package kernel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// reportOf is the report of one fault.
func reportOf(f guest.Fault, out outcome, subjects ...subject.Subject) (r Report, err error) {
	b := &bench{subjects: subjects, jobs: []*job{{fault: f, out: out}}}
	return r, b.report(&r)
}

func TestReport(t *testing.T) {
	one := subject.Subject{Name: "one", Group: string(Ours), Ordered: true, Restarts: true, Bound: time.Second}
	fixed := subject.Subject{Name: "fixed", Group: string(Ours), Ordered: true, Bound: time.Second}
	other := subject.Subject{Name: "other", Group: string(Peers), Bound: -1}
	absent := subject.Subject{Name: "absent", Group: string(Peers), Skipped: "no module"}
	well := Verdict{IDs: 9}
	all := outcome{results: []guest.Result{{Subject: "one", Verdict: well}, {Subject: "other", Verdict: well}}}

	r, err := reportOf(guest.Fault{Name: "f"}, all, one, other, absent)
	require.NoError(t, err)
	require.Len(t, r.Rows, 3)
	require.Equal(t, "no module", r.Rows[2].Skipped)
	for _, row := range r.Rows {
		require.Empty(t, row.Broken)
	}

	_, err = reportOf(guest.Fault{Name: "f"}, all, one, fixed, other)
	require.EqualError(t, err, "f: the machine sent no result of fixed")
	_, err = reportOf(guest.Fault{Name: "f"}, outcome{}, one)
	require.EqualError(t, err, "f: the machine sent no result of one")
	r, err = reportOf(guest.Fault{Name: "f"}, outcome{rows: []Row{{Subject: "writers"}}}, one, absent)
	require.NoError(t, err, "a fault with subjects of its own")
	require.Len(t, r.Rows, 1)

	crashed := outcome{results: []guest.Result{{Subject: "one", Verdict: well, Crashed: "exit status 2"}, {Subject: "other", Verdict: well, Crashed: "exit status 2"}}}
	r, err = reportOf(guest.Fault{Name: "f"}, crashed, one, other)
	require.NoError(t, err)
	require.Equal(t, []string{"its process ended by itself, with all generators in it: exit status 2"}, r.Rows[0].Broken)
	require.Empty(t, r.Rows[1].Broken)

	// The IDs that a copy issued too are judged apart from the other duplicates.
	f := guest.Fault{Name: "f", Copied: true}
	copied := outcome{results: []guest.Result{{Subject: "fixed", Verdict: Verdict{IDs: 9, Duplicates: 4}}}, again: map[string]again{"fixed": {ids: 4}}}
	r, err = reportOf(f, copied, fixed)
	require.NoError(t, err)
	require.Empty(t, r.Rows[0].Broken)
	require.Equal(t, "4 IDs came twice: "+knownFixed, r.Rows[0].Known)
	copied.results[0].Verdict.Disorder = 1
	r, err = reportOf(f, copied, fixed)
	require.NoError(t, err)
	require.Len(t, r.Rows[0].Broken, 1)
	require.Empty(t, r.Rows[0].Known, "a documented exception does not hide a broken promise")
}

func TestResultsInParts(t *testing.T) {
	var o outcome
	for _, r := range []guest.Result{
		{Subject: "one", IDs: []string{"1", "2"}}, {Subject: "one", IDs: []string{"3"}}, {Subject: "one", Stderr: "a"},
		{Subject: "two", IDs: []string{"4"}}, {Subject: "two"}, {Subject: "three"},
	} {
		o.add(r)
	}
	require.Equal(t, []guest.Result{{Subject: "one", IDs: []string{"1", "2", "3"}, Stderr: "a"}, {Subject: "two", IDs: []string{"4"}}, {Subject: "three"}}, o.results)
}

func TestJoin(t *testing.T) {
	join := func(original, copied []guest.Result) (outcome, error) {
		done := make(chan struct{})
		close(done)
		s := &session{twin: &twin{out: outcome{results: copied}, done: done}}
		return s.join(outcome{results: original}, nil)
	}
	out, err := join(
		[]guest.Result{{Subject: "one", Verdict: Verdict{IDs: 3}, IDs: []string{"4", "5"}, Stderr: "a"}},
		[]guest.Result{{Subject: "one", Verdict: Verdict{IDs: 4, Duplicates: 1, Again: 1}, IDs: []string{"5", "6"}, Stderr: "b", Crashed: "exit status 2"}})
	require.NoError(t, err)
	require.Equal(t, []guest.Result{{Subject: "one", Verdict: Verdict{IDs: 7, Duplicates: 2, Again: 1}, Stderr: "ab", Crashed: "exit status 2"}}, out.results)
	require.Equal(t, again{ids: 1, span: 1}, out.again["one"])
	_, err = join([]guest.Result{{Subject: "one"}, {Subject: "two"}}, []guest.Result{{Subject: "two"}})
	require.EqualError(t, err, "the copy sent no result of one")
}
