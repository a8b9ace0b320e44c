package generatortest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Result is the outcome of a Subject under one [Script].
type Result struct {
	Fault  string `json:"fault,omitempty"` // such as "F5", or empty for a script outside the catalogue
	Name   string `json:"name"`            // such as "repeated-steps"
	Script string `json:"script"`
	// Skipped says why the script does not apply, and is empty if it ran.
	Skipped string `json:"skipped,omitempty"`
	// Note says what the figures do not show.
	Note string `json:"note,omitempty"`

	Issued     int `json:"issued"`     // with up to four calls after the last step
	Errors     int `json:"errors"`     // calls that failed
	Duplicates int `json:"duplicates"` // IDs that had been issued before
	Disorder   int `json:"disorder"`   // IDs not above one that was returned before their call began
	// LongestStall is the longest call, in the clock's true time. It is not measured
	// while several callers run at once.
	LongestStall Seconds `json:"longest_stall_seconds"`
	// LargestLead is the furthest that an ID was ahead of its generator's clock.
	LargestLead Seconds `json:"largest_lead_seconds"`

	// Violations describes the first broken promises, at most three of each kind, in the order of the
	// kinds: duplicates first. Violated counts all of them by kind.
	Violations []Violation  `json:"violations,omitempty"`
	Violated   map[Kind]int `json:"violated,omitempty"`

	// Least is the outcome of the least script found that fails so, if [Shrink] has looked for it.
	Least *Result `json:"least,omitempty"`

	spun bool // a call did not end
}

// Seconds is a duration that JSON has in seconds.
type Seconds time.Duration

// String returns it as a [time.Duration] is written.
func (s Seconds) String() string { return time.Duration(s).String() }

// MarshalJSON writes a number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads it, to the nanosecond below 100 days.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var f float64
	err := json.Unmarshal(text, &f)
	*s = Seconds(math.Round(f * 1e9))
	return err
}

// Kind is the promise that a violation broke.
type Kind string

// The kinds of violations, the worst first.
const (
	Duplicate  Kind = "duplicate"   // an ID was issued twice
	Disorder   Kind = "disorder"    // an ID is not above one that was returned before its call began
	Stall      Kind = "stall"       // a call took longer than claimed
	Lead       Kind = "lead"        // an ID is further ahead of the clock than claimed
	Stale      Kind = "stale"       // an ID's tick was over before its call began
	Rejected   Kind = "rejected"    // a call failed that should have been served
	WrongError Kind = "wrong-error" // an error is not the promised one
	EndOfTime  Kind = "end-of-time" // an ID was issued before Epoch, or for a time not before End
	NoStart    Kind = "no-start"    // a process or a stream did not start, or could not be closed
	NoRecovery Kind = "no-recovery" // after the faults, calls were not served at once
)

var kinds = []Kind{Duplicate, Disorder, Stall, Lead, Stale, Rejected, WrongError, EndOfTime, NoStart, NoRecovery}

// AfterScript is the Step of an [Event] after the last step.
const AfterScript = -1

// Event is a call, or another moment of a script.
type Event struct {
	ID      string  `json:"id,omitempty"` // that the call returned
	Process int     `json:"process"`      // 0 is the first; each start on the state of another counts
	Step    int     `json:"step"`         // of the script, from 1 on; 0 is before the first, AfterScript after the last
	Call    int     `json:"call"`         // the number of calls until then
	At      Seconds `json:"at_seconds"`   // true time since the script began
}

// String says where in a script it was, on one line.
func (e Event) String() string {
	where := fmt.Sprintf("step %d", e.Step)
	if e.Step == AfterScript {
		where = "the calls after the script"
	}
	return fmt.Sprintf("%s, call %d, %s in", where, e.Call, e.At)
}

// Violation is one broken promise, and the call that broke it.
type Violation struct {
	Kind Kind `json:"kind"`
	Event
	First  *Event `json:"first,omitempty"` // the earlier call, which returned the same ID, or one that is not below
	Detail string `json:"detail"`          // what happened, with the numbers
}

// String returns the violation on one line.
func (v Violation) String() string {
	if v.Kind != Duplicate || v.First == nil {
		return fmt.Sprintf("%s: %s (%s)", v.Kind, v.Detail, v.Event)
	}
	first, again := "first", "again"
	if v.across() {
		first, again = fmt.Sprintf("first by process %d", v.First.Process), fmt.Sprintf("again by process %d", v.Process)
	}
	return fmt.Sprintf("%s: %s, %s in %s; %s in %s", v.Kind, v.ID, first, v.First, again, v.Event)
}

// Failed reports whether the script ran with a violation.
func (r Result) Failed() bool { return len(r.Violated) > 0 }

// Summary counts the violations by kind, as in "3 duplicate, 1 stall".
func (r Result) Summary() string {
	var counts []string
	for _, kind := range kinds {
		if n := r.Violated[kind]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(counts, ", ")
}

// violate counts a violation, and has the first of its kind described.
func (r *Result) violate(kind Kind, describe func() Violation) {
	if r.Violated == nil {
		r.Violated = map[Kind]int{}
	}
	if r.Violated[kind] < 3 {
		r.Violations = append(r.Violations, describe())
	}
	r.Violated[kind]++
}

// Worst returns the violation to look at first: of the least script if there is one, the worst kind
// before others. It is the zero Violation if there is none.
func (r Result) Worst() Violation {
	if r.Least != nil {
		return r.Least.Worst()
	}
	if len(r.Violations) == 0 {
		return Violation{}
	}
	return r.Violations[0]
}

// Lines says what a failure was, on a screen: how often each promise was broken, the first
// violations, and the script that repeats them. All are those of the least script if there is one.
func (r Result) Lines() []string {
	lines, told := []string{"in all: " + r.Summary()}, r
	if r.Least != nil {
		lines, told = append(lines, "the least script that fails so has:"), *r.Least
	}
	for _, v := range told.Violations {
		lines = append(lines, v.String())
	}
	return append(lines, "script: "+told.Script)
}
