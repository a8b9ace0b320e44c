package generatortest

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of a search for the least script.
const (
	maxTries     = 500
	maxShrinking = 3 * time.Second
)

// Shrink returns a failed result with Least: the outcome of the shortest script found that breaks the worst of
// its promises again, between two processes if it was broken so. Shrink leaves steps out, and makes numbers and
// times smaller, for as long as that helps: 3 seconds at most. A result of several callers comes back as it is,
// since its script fails by chance; so does one that did not fail, or in which a call did not end.
func Shrink[ID cmp.Ordered](s Subject[ID], r Result) Result {
	script, err := ParseScript(r.Script)
	if err != nil || !r.Failed() || r.spun || script.Callers > 1 {
		return r
	}
	worst := r.Worst()
	began, tries := time.Now(), 0
	fails := func(steps []Step) bool {
		if tries++; len(steps) == 0 || tries > maxTries || time.Since(began) > maxShrinking {
			return false
		}
		tried := script
		tried.Steps = steps
		got := RunScript(s, tried)
		if got.spun { // each such try takes half a second
			tries = maxTries
		}
		return got.has(worst)
	}
	least := script.Steps
	if worst.Step != AfterScript && fails(least[:worst.Step]) {
		least = least[:worst.Step]
	}
	for before := 0; before != tries; {
		before = tries
		if fewer := fewerSteps(least, fails); len(fewer) < len(least) {
			least = fewer
		} else if smaller, ok := smallerSteps(least, fails); ok {
			least = smaller
		} else {
			break
		}
	}
	script.Steps = least
	if got := RunScript(s, script); got.has(worst) { // else it fails by chance
		r.Least = &got
	}
	return r
}

// has reports whether the result has such a violation, of one process or of two as that one.
func (r Result) has(such Violation) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Kind == such.Kind && v.across() == such.across() })
}

// across reports whether it was between two processes.
func (v Violation) across() bool { return v.First != nil && v.First.Process != v.Process }

// fewerSteps leaves out steps as long as the rest fails: half of them at first, in the end one by one.
func fewerSteps(steps []Step, fails func([]Step) bool) []Step {
	for size := max(1, len(steps)/2); size > 0; size /= 2 {
		for from := 0; from < len(steps); {
			if rest := slices.Concat(steps[:from], steps[min(from+size, len(steps)):]); fails(rest) {
				steps = rest
			} else {
				from += size
			}
		}
	}
	return steps
}

// round are the numbers and the times that are tried, in order.
var (
	roundCounts = []int{0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4097, 5000, 10_000}
	roundTimes  = []time.Duration{0, time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour}
)

// smallerSteps makes the numbers and times of steps as small as they can be one by one, and reports
// whether any became smaller.
func smallerSteps(steps []Step, fails func([]Step) bool) (_ []Step, any bool) {
	steps = slices.Clone(steps)
	try := func(i int, change Step) bool {
		tried := slices.Clone(steps)
		tried[i] = change
		if !fails(tried) {
			return false
		}
		steps, any = tried, true
		return true
	}
	for i := range steps {
		if is := steps[i]; is.Do == Batch || is.Do == Stream {
			try(i, Step{Do: IDs, Count: is.Count})
		}
		change := steps[i]
		for _, change.Count = range roundCounts {
			if change.Count >= steps[i].Count || try(i, change) {
				break
			}
		}
		change = steps[i]
		for _, d := range roundTimes {
			if change.Time = d; steps[i].Time < 0 {
				change.Time = -d
			}
			if d >= steps[i].Time.Abs() || try(i, change) {
				break
			}
		}
	}
	return steps, any
}
