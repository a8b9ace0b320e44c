package kernel

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
	"github.com/tickflake/tickflake/snowflake"
)

// grace is how much longer than its bound a call may take. The machine is emulated, and
// the control thread, whose stalls are subtracted, stalls at other moments than a call.
const grace = 500 * time.Millisecond

// amidCopies is grace in a machine that is saved again and again, whose calls took up to 2.3 s too long on a busy host.
// A call that waits for the store of a copy, whose connections are dead, takes 15 s and more.
const amidCopies = 10 * time.Second

// The documented exceptions: Row.Known. The last three are of copies.
const (
	knownRestart  = "a fixed node number without a store: nothing is kept across a restart"
	knownNoCall   = "it has no call for restored memory"
	knownFixed    = "a fixed node number without a store, which the copy has too"
	knownOneStore = "its store was copied with its memory, so each claims in its own"
)

// judged is the row of a subject. again is what its copy has issued too.
func judged(f guest.Fault, s subject.Subject, result guest.Result, a again) Row {
	row := Row{Fault: f.Name, Subject: s.Name, Group: s.Group, Verdict: result.Verdict}
	row.Broken, row.Known = judge(f, s, result.Verdict)
	row.Verdict.Duplicates += a.ids
	if lag := time.Duration(row.Verdict.Lag); lag > grace {
		row.Note = fmt.Sprintf("IDs up to %v behind the clock", lag.Round(time.Millisecond))
	}
	if row.Group == Ours && result.Crashed != "" {
		row.Broken = append(row.Broken, "its process ended by itself, with all generators in it: "+result.Crashed)
	}
	broken, known := judgeCopy(f, s, a, result.Stderr)
	if row.Known = cmp.Or(known, row.Known); broken != "" {
		row.Broken = append(row.Broken, broken)
	}
	if len(row.Broken) > 0 {
		row.Known = "" // it does not explain all
	}
	return row
}

// judge returns the promises of a subject that a verdict breaks under a fault, and the
// documented exception that explains its duplicates.
func judge(f guest.Fault, s subject.Subject, v Verdict) (broken []string, known string) {
	ours := s.Group == Ours
	if v.IDs == 0 {
		broken = append(broken, "it issued no ID; its first error: "+cmp.Or(v.Error, "none"))
	}
	switch {
	case v.Duplicates == 0:
	case !f.Restarts || s.Restarts:
		broken = append(broken, fmt.Sprintf("%d of %d IDs are duplicates%s", v.Duplicates, v.IDs, twice(v)))
	case v.Again > 0: // no restart explains these
		broken = append(broken, fmt.Sprintf("%d of %d IDs are duplicates of the same process%s", v.Again, v.IDs, twice(v)))
	default:
		known = knownRestart
	}
	switch {
	case v.Failed == 0 || f.NoRTC || f.Wait: // until the clock was set, no generator can be made
	case ours && f.Calm:
		broken = append(broken, fmt.Sprintf("%d calls failed, though no clock stepped; the first: %s", v.Failed, v.Error))
	case s.Steady && f.Kind == guest.Clocks:
		broken = append(broken, fmt.Sprintf("%d calls failed, though it reads no clock that stepped; the first: %s", v.Failed, v.Error))
	}
	if v.Disorder > 0 && s.Ordered {
		broken = append(broken, fmt.Sprintf("%d of %d IDs are not above the one before of their process", v.Disorder, v.IDs))
	}
	if v.Stuck && (ours && !f.Behind || s.Steady) {
		broken = append(broken, "it issued no ID after the fault was over; its first error: "+cmp.Or(v.Error, "none"))
	}
	// A reserve may outlast the fault; all else writes meanwhile, and a write that fails
	// must not pass for one that was done.
	stored := ours && (s.Leased || s.Shares)
	if f.Kind == guest.Clocks {
		stored = ours && s.Leased && s.Steady
	}
	if stored && len(f.Causes) > 0 && !v.Named && (v.Failed > 0 || s.Reserve == 0) {
		broken = append(broken, fmt.Sprintf("neither an error nor the log says %q; its first error: %s", f.Causes, cmp.Or(v.Error, "none")))
	}
	if late := ours && s.Steady && !s.Leased && f.Wait; ours && f.Right && !late && time.Duration(v.Lag) > grace {
		broken = append(broken, fmt.Sprintf("an ID is %v behind the clock, which was right by then", v.Lag))
	}
	slack := grace
	if f.VMClock {
		slack = amidCopies
	}
	bound := s.Bound
	if s.Counted {
		bound = max(bound, f.Timeout)
	}
	if bound >= 0 && time.Duration(v.Stall) > bound+slack {
		broken = append(broken, fmt.Sprintf("a call took %v; its strategy allows %v", v.Stall, bound))
	}
	return broken, known
}

// twice says which calls returned the first ID that came twice.
func twice(v Verdict) string {
	if v.Twice == nil {
		return ""
	}
	first, again := v.Twice.First, v.Twice.Again
	return fmt.Sprintf(": %s first from process %d, %v in; again from process %d, %v in", v.Twice.ID,
		first.By, first.At.Round(time.Millisecond), again.By, again.At.Round(time.Millisecond))
}

// judgeCopy judges what an original and its copy have both issued: it returns the promise
// that was broken, or the documented exception.
func judgeCopy(f guest.Fault, s subject.Subject, a again, stderr string) (broken, known string) {
	twice := fmt.Sprintf("%d IDs came twice: ", a.ids)
	switch {
	case a.idle && s.Group == Ours:
		return "the original or the copy issued nothing after the snapshot", ""
	case f.VMClock && s.Group == Ours && s.Restarts && !strings.Contains(stderr, told):
		return fmt.Sprintf("%sthe log does not say %q", twice, told), ""
	case a.ids == 0:
		return "", ""
	case s.Group != Ours:
		return "", twice + knownNoCall
	case !s.Restarts:
		return "", twice + knownFixed
	case !f.Shared:
		return "", twice + knownOneStore
	case f.VMClock:
		calls := fmt.Sprintf("%sin %d of %d copies, where a call was in flight", twice, a.seen, a.copies)
		if a.ids > a.seen*max(s.Batch, 1) {
			return calls + ": one call each", ""
		}
		return "", calls
	case f.Told:
		return twice + "the copy called Restored before", ""
	case s.Leased:
		layout := snowflake.Default()
		d := time.Duration(a.span>>(layout.NodeBits+layout.SequenceBits)) * layout.Tick
		text := fmt.Sprintf("%sthe last %v after the snapshot, in the rest of a window of %v", twice, d, f.Window)
		if d > f.Window || !strings.Contains(stderr, noticed) {
			return text + fmt.Sprintf("; the log says %q: %t", noticed, strings.Contains(stderr, noticed)), ""
		}
		return "", text
	case a.ids <= s.Reserve:
		return "", fmt.Sprintf("%sthe rest of its reserve of at most %d", twice, s.Reserve)
	}
	return fmt.Sprintf("%sits reserve is at most %d", twice, s.Reserve), ""
}

// told is in the log of all of ours that VMClock has told of a copy.
const told = `by="/dev/vmclock0, `

// noticed is in the log of a keeper that found a write of its copy.
const noticed = "lease: lost"
