package kernel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// No mutant breaks what a copy may repeat, so the judgement itself is looked at.
func TestJudgeCopy(t *testing.T) {
	leased := subject.Subject{Group: string(Ours), Restarts: true, Leased: true}
	segmented := subject.Subject{Group: string(Ours), Restarts: true, Reserve: 8}
	ordered := subject.Subject{Group: string(Ours), Restarts: true}
	fixed := subject.Subject{Group: string(Ours)}
	peer := subject.Subject{Group: string(Peers)}
	shared := guest.Fault{Copied: true, Shared: true, Window: 3 * time.Second}
	told, cloned := shared, shared
	told.Told, cloned.Shared = true, false
	millis := func(n int64) again { return again{ids: 9, span: n << 22} }
	const log = "WARN lease: lost, a copy of this process wrote to the cell"
	for _, test := range []struct {
		name   string
		f      guest.Fault
		s      subject.Subject
		a      again
		log    string
		broken bool
		text   string
	}{
		{"nothing came twice", told, leased, again{}, log, false, ""},
		{"nothing was issued", told, leased, again{idle: true}, log, true, "issued nothing after the snapshot"},
		{"a peer issued nothing", told, peer, again{idle: true}, "", false, ""},
		{"told", told, leased, again{ids: 1}, log, true, "1 IDs came twice: the copy called Restored before"},
		{"told, segmented", told, segmented, again{ids: 1}, "", true, "called Restored before"},
		{"in the window", shared, leased, millis(3000), log, false, "the last 3s after the snapshot, in the rest of a window of 3s"},
		{"after the window", shared, leased, millis(3001), log, true, "the last 3.001s after the snapshot"},
		{"not noticed", shared, leased, millis(1000), "INFO lease: claimed", true, `the log says "lease: lost": false`},
		{"in the reserve", shared, segmented, again{ids: 8}, "", false, "the rest of its reserve of at most 8"},
		{"beyond the reserve", shared, segmented, again{ids: 9}, "", true, "its reserve is at most 8"},
		{"ordered", shared, ordered, again{ids: 1}, "", true, "its reserve is at most 0"},
		{"the store was copied", cloned, leased, again{ids: 7}, "", false, "7 IDs came twice: " + knownOneStore},
		{"a fixed node number", told, fixed, again{ids: 7}, "", false, knownFixed},
		{"a peer", told, peer, again{ids: 7}, "", false, knownNoCall},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken, known := judgeCopy(test.f, test.s, test.a, test.log)
			text, none := known, broken
			if test.broken {
				text, none = broken, known
			}
			require.Empty(t, none)
			if test.text == "" {
				require.Empty(t, text)
			}
			require.Contains(t, text, test.text)
		})
	}
}
