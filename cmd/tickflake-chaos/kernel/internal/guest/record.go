//go:build linux

package guest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/subject"
)

const (
	logKept = 2000
	// kept is how many IDs of one subject go to the host.
	kept = 1 << 17
)

// record is what all processes of a subject have printed.
type record struct {
	stage  *Stage
	place  subject.Place
	other  bool // nobody waits for it: a generator that is not ours, or need not issue again
	shares bool // it may share its state with a second process
	drifts bool // its keeper hears of a clock that was wrong

	mu    sync.Mutex // of all below
	check *check.Checker
	lines int
	held  bool // it waits for a command
	keep  bool // all IDs from now on
	ids   []string
	// before is the marker of VMClock up to which IDs are not kept: see often. 0: all are.
	before uint64
	log    []byte // its end
	cause  bool   // an error or the log had one of the causes of the fault
	// crashed is how a process ended that nothing here has killed: a panic.
	crashed string
}

// do changes what belongs to mu, at an instant of the stage.
func (l *record) do(change func(now time.Duration)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.stage.now())
}

// line takes a line of the process with this number.
func (l *record) line(number int, text string) {
	if log, ok := strings.CutPrefix(text, subject.Log); ok {
		_, _ = l.Write([]byte(log + "\n"))
		return
	}
	l.do(func(now time.Duration) {
		switch text {
		case "":
		case subject.Held:
			l.check.Made(now, number)
			l.held = true
		case subject.Made:
			l.check.Made(now, number)
		default:
			id := subject.Parse(text)
			id.Start = number
			for id.Text = range strings.SplitSeq(id.Text, subject.And) {
				l.add(now, id)
			}
		}
	})
}

// add counts an ID or a failed call. The caller has locked mu.
func (l *record) add(now time.Duration, id check.ID) {
	l.check.Add(now, id)
	l.look(id.Err)
	l.lines++
	if l.keep && id.Err == "" && (l.before == 0 || id.Marker > l.before) && len(l.ids) < kept {
		l.ids = append(l.ids, id.Text)
	}
}

// Write keeps the end of the log.
func (l *record) Write(text []byte) (int, error) {
	l.do(func(time.Duration) {
		all := append(l.log, text...)
		l.look(string(all))
		l.log = append([]byte(nil), all[max(0, len(all)-logKept):]...)
	})
	return len(text), nil
}

// look notes whether a text names a cause of the fault. The caller has locked mu.
func (l *record) look(text string) {
	l.cause = l.cause || slices.ContainsFunc(l.stage.causes, func(c string) bool { return strings.Contains(text, c) })
}

// ended notes the end of a process that was killed, or how it ended by itself.
func (l *record) ended(at time.Duration, number int, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check.Ended(at, number)
	if how == "" {
		return
	}
	l.crashed = how
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.log), "")), "\n")
	said := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "panic: ") }); i >= 0 {
		said = lines[i] // the last line is one of the stack
	}
	if said != "" {
		how += ": " + said
	}
	l.add(at, check.ID{Err: "the process ended by itself: " + how, Start: number})
}

// is reports whether something holds of what belongs to mu.
func (l *record) is(done func(*record) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return done(l)
}

// What a stage waits for: an ID or an error, the end of its calls, and an ID after the fault.
func issued(l *record) bool   { return l.lines > 0 || l.place.Wait }
func holds(l *record) bool    { return l.held }
func recovers(l *record) bool { return l.check.Recovers() }
func warned(l *record) bool   { return l.cause || !l.drifts }

// result is what there is to tell after the end of all processes.
func (l *record) result() *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &Result{Subject: l.place.Subject, Verdict: l.check.Verdict(), IDs: l.ids, Crashed: l.crashed}
	r.Verdict.Named = l.cause
	if r.Verdict.Failed > 0 || l.keep {
		r.Stderr = strings.ToValidUTF8(string(l.log), "")
	}
	return r
}
