package generatortest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a [Subject] did under the faults.
type Report struct {
	Subject string   `json:"subject"`
	Results []Result `json:"results"`
}

// Result is what a Subject did under one [Script].
type Result struct {
	Fault  string `json:"fault,omitempty"` // such as "F5", or empty for a script of one's own
	Name   string `json:"name"`            // such as "repeated-steps"
	Script string `json:"script"`
	// Skipped says why the script does not apply, and is empty if it ran.
	Skipped string `json:"skipped,omitempty"`
	// Note says what is not seen from the figures.
	Note string `json:"note,omitempty"`

	Issued     int `json:"issued"`     // with those of up to four calls at the end, which show whether all is well
	Errors     int `json:"errors"`     // calls that failed
	Duplicates int `json:"duplicates"` // IDs that had been issued before
	Disorder   int `json:"disorder"`   // IDs not above one that was returned before their call began
	// LongestStall is the longest that a call took, in the clock's true time.
	// While several callers run at once it is not measured.
	LongestStall time.Duration `json:"longestStallNs"`
	// LargestLead is the furthest that an ID was ahead of its generator's clock.
	LargestLead time.Duration `json:"largestLeadNs"`

	// Violations are the first things that should not have been, at most
	// MaxViolations of each kind. Violated counts all of them, by their kind.
	Violations []Violation  `json:"violations,omitempty"`
	Violated   map[Kind]int `json:"violated,omitempty"`
}

// MaxViolations is how many violations of a kind a [Result] describes.
const MaxViolations = 3

// Kind is what sort of promise was broken.
type Kind string

// The kinds of violations.
const (
	Duplicate  Kind = "duplicate"   // an ID was issued twice
	Disorder   Kind = "disorder"    // an ID is not above one that was returned before its call began
	Stall      Kind = "stall"       // a call took longer than was promised
	Lead       Kind = "lead"        // an ID is further ahead of the clock than was promised
	Stale      Kind = "stale"       // an ID's tick was over before its call began
	Rejected   Kind = "rejected"    // a call failed that should have been served
	WrongError Kind = "wrong-error" // an error is not the one that was promised
	EndOfTime  Kind = "end-of-time" // an ID was issued before Epoch, or for a time not before End
	NoStart    Kind = "no-start"    // a process or a stream did not start, or could not be closed
	NoRecovery Kind = "no-recovery" // the faults were over, and calls still not served at once
)

// Violation is a promise that was broken.
type Violation struct {
	Kind   Kind          `json:"kind"`
	Step   int           `json:"step"`   // of the script, from 1 on; 0 is before the first, and one more than there are is after the last
	Call   int           `json:"call"`   // how many calls there had been
	At     time.Duration `json:"atNs"`   // true time since the script began
	Detail string        `json:"detail"` // what happened, with the numbers
}

// String returns the violation as a line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (step %d, call %d, %s in)", v.Kind, v.Detail, v.Step, v.Call, v.At)
}

// OK reports whether the script ran, and nothing was violated.
func (r Result) OK() bool { return r.Skipped == "" && !r.Failed() }

// Failed reports whether the script ran, and something was violated.
func (r Result) Failed() bool { return len(r.Violated) > 0 }

// Summary counts the violations by kind, as in "3 duplicate, 1 stall".
func (r Result) Summary() string {
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Violated)) {
		counts = append(counts, fmt.Sprintf("%d %s", r.Violated[kind], kind))
	}
	return strings.Join(counts, ", ")
}

func (r *Result) violate(v Violation) {
	if r.Violated == nil {
		r.Violated = map[Kind]int{}
	}
	r.Violated[v.Kind]++
	if r.Violated[v.Kind] <= MaxViolations {
		r.Violations = append(r.Violations, v)
	}
}

// Failed reports whether any result did.
func (r Report) Failed() bool {
	for _, result := range r.Results {
		if result.Failed() {
			return true
		}
	}
	return false
}

// String returns the report as a table, and below it the violations.
func (r Report) String() string {
	var b, below strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tfault\tIDs\terrors\tduplicates\tdisorder\tstall\tlead\n")
	for _, res := range r.Results {
		title := strings.TrimSpace(res.Fault + " " + res.Name)
		if res.Skipped != "" {
			fmt.Fprintf(w, "-\t%s\t-\t-\t-\t-\t-\t-\tdoes not apply: %s\n", title, res.Skipped)
			continue
		}
		mark := "✓"
		if res.Failed() {
			mark = "✗"
			fmt.Fprintf(&below, "\n%s under %s: %s; the first:\n", r.Subject, title, res.Summary())
			for _, v := range res.Violations {
				fmt.Fprintf(&below, "  %s\n", v)
			}
			fmt.Fprintf(&below, "  script: %s\n", res.Script)
		}
		note := "" // without one, there is no cell for it, whose padding would be trailing blanks
		if res.Note != "" {
			note = "\t" + res.Note
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s%s\n", mark, title, res.Issued, res.Errors, res.Duplicates, res.Disorder, res.LongestStall, res.LargestLead, note)
	}
	w.Flush()
	return b.String() + below.String()
}
