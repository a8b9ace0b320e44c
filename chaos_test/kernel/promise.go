package kernel

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/subject"
)

// grace is how much longer than its bound a call may take. The machine is emulated, and
// the control thread, whose stalls are subtracted, stalls at other moments than a call.
const grace = 500 * time.Millisecond

// The documented exceptions: Row.Known.
const (
	knownRestart = "a fixed node number without a store: nothing is kept across a restart"
)

// judge returns the promises of a subject that a verdict breaks under a fault, and the
// documented exception that explains its duplicates.
func judge(f guest.Fault, s subject.Subject, v Verdict) (broken []string, known string) {
	ours := Group(s.Group) == Ours
	if v.IDs == 0 {
		broken = append(broken, "it issued no ID; its first error: "+cmp.Or(v.Error, "none"))
	}
	switch {
	case v.Duplicates == 0:
	case !f.Restarts || s.Restarts:
		broken = append(broken, fmt.Sprintf("%d of %d IDs are duplicates", v.Duplicates, v.IDs))
	case v.Again > 0: // no restart explains these
		broken = append(broken, fmt.Sprintf("%d of %d IDs are duplicates of the same process", v.Again, v.IDs))
	default:
		known = knownRestart
	}
	if ours && v.Failed > 0 && f.Calm {
		broken = append(broken, fmt.Sprintf("%d calls failed, though nothing happened; the first: %s", v.Failed, v.Error))
	}
	if v.Disorder > 0 && s.Ordered {
		broken = append(broken, fmt.Sprintf("%d of %d IDs are not above the one before of their process", v.Disorder, v.IDs))
	}
	if ours && v.Stuck {
		broken = append(broken, "it issued no ID after the fault was over; its first error: "+cmp.Or(v.Error, "none"))
	}
	// A reserve may outlast the fault; all else writes meanwhile, and a write that fails
	// must not pass for one that was done.
	if stored := ours && (s.Leased || s.Shares); stored && len(f.Causes) > 0 && !v.Named && (v.Failed > 0 || s.Reserve == 0) {
		broken = append(broken, fmt.Sprintf("neither an error nor the log says %q; its first error: %s", f.Causes, cmp.Or(v.Error, "none")))
	}
	if s.Bound >= 0 && v.Stall > s.Bound+grace {
		broken = append(broken, fmt.Sprintf("a call took %v; its strategy allows %v", v.Stall, s.Bound))
	}
	return broken, known
}
