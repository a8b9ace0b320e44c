package kernel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

func TestJudge(t *testing.T) {
	kept := subject.Subject{Group: string(Ours), Ordered: true, Restarts: true, Bound: time.Second}
	fixed := subject.Subject{Group: string(Ours), Ordered: true, Bound: time.Second}
	peer := subject.Subject{Group: string(Peers), Bound: -1}
	strict := subject.Subject{Group: string(Peers), Ordered: true, Restarts: true, Bound: -1}
	leased, segment := kept, kept
	leased.Leased, segment.Shares, segment.Reserve = true, true, 2
	full := guest.Fault{Causes: []string{"no space", "no more"}}
	runs, restarts := guest.Fault{}, guest.Fault{Restarts: true}
	duplicates, disorder, stall := Verdict{IDs: 9, Duplicates: 3}, Verdict{IDs: 9, Disorder: 2}, Verdict{IDs: 9, Stall: time.Second + grace + 1}
	for _, test := range []struct {
		name   string
		fault  guest.Fault
		s      subject.Subject
		v      Verdict
		broken string
		known  string
	}{
		{"all is well", runs, kept, Verdict{IDs: 9, Failed: 4, Lead: time.Hour, Stall: time.Second + grace}, "", ""},
		{"ours: duplicates", runs, kept, duplicates, "3 of 9 IDs are duplicates", ""},
		{"ours: duplicates over a restart", restarts, kept, duplicates, "3 of 9 IDs are duplicates", ""},
		{"ours without a store: duplicates", runs, fixed, duplicates, "3 of 9 IDs are duplicates", ""},
		{"ours without a store: duplicates over a restart", restarts, fixed, duplicates, "", knownRestart},
		{"ours: disorder", runs, fixed, disorder, "2 of 9 IDs are not above the one before of their process", ""},
		{"ours: disorder over a restart", restarts, kept, disorder, "2 of 9 IDs are not above the one before of their process", ""},
		{"ours: stall", runs, kept, stall, "a call took 1.500000001s; its strategy allows 1s", ""},
		{"ours: nothing", runs, kept, Verdict{Error: "no"}, "it issued no ID; its first error: no", ""},
		{"ours without a store: duplicates in a process, and a restart", restarts, fixed, Verdict{IDs: 9, Duplicates: 3, Again: 1}, "1 of 9 IDs are duplicates of the same process", ""},
		{"ours: errors, and nothing happened", guest.Fault{Calm: true}, fixed, Verdict{IDs: 9, Failed: 2, Error: "no"}, "2 calls failed, though nothing happened; the first: no", ""},
		{"peer: errors, and nothing happened", guest.Fault{Calm: true}, peer, Verdict{IDs: 9, Failed: 2, Error: "no"}, "", ""},
		{"peer: duplicates", runs, peer, duplicates, "3 of 9 IDs are duplicates", ""},
		{"peer: duplicates over a restart", restarts, peer, duplicates, "", knownRestart},
		{"peer that promises restarts", restarts, strict, duplicates, "3 of 9 IDs are duplicates", ""},
		{"peer: disorder", runs, peer, disorder, "", ""},
		{"peer that promises order", runs, strict, disorder, "2 of 9 IDs are not above the one before of their process", ""},
		{"peer: stall", runs, peer, stall, "", ""},
		{"ours: stuck", runs, kept, Verdict{IDs: 9, Failed: 1, Error: "no", Stuck: true}, "it issued no ID after the fault was over; its first error: no", ""},
		{"peer: stuck", runs, peer, Verdict{IDs: 9, Stuck: true}, "", ""},
		{"a failed write is an error that names the cause", full, leased, Verdict{IDs: 9, Failed: 1, Named: true}, "", ""},
		{"a failed write is no error", full, leased, Verdict{IDs: 9}, `neither an error nor the log says ["no space" "no more"]; its first error: none`, ""},
		{"an error without the cause", full, segment, Verdict{IDs: 9, Failed: 1, Error: "late"}, `neither an error nor the log says ["no space" "no more"]; its first error: late`, ""},
		{"a reserve outlasts the fault", full, segment, Verdict{IDs: 9}, "", ""},
		{"nothing is written", full, fixed, Verdict{IDs: 9, Failed: 1}, "", ""},
		{"a peer names nothing", full, strict, Verdict{IDs: 9, Failed: 1}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken, known := judge(test.fault, test.s, test.v)
			if test.broken == "" {
				require.Empty(t, broken)
			} else {
				require.Equal(t, []string{test.broken}, broken)
			}
			require.Equal(t, test.known, known)
		})
	}
}
