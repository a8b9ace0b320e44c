package generatortest

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Script is what happens to a generator and its clock, in order. [ParseScript] reads
// its text form and [Script.String] writes it. The text is easy to save and to send
// with a bug report:
//
//	# A server sets the clock back while the generator is busy.
//	strategy borrow:1s
//	clock raw
//	ids 5000
//	step -1s
//	slew 0.5 for 2s
//	ids 100 over 3s
//
// Each step has a line of its own, or stands between semicolons; a # begins a comment.
// The settings come first and may be left out:
//
//	strategy S        the strategy, as strategies.Parse reads it
//	clock C           what the generator reads: raw, mono or resync
//	begin T           the wall's time at the start: 2026-06-01T12:00:00Z, or end-5ms
//	                  for a time before the generator's end
//	callers N         N goroutines issue the IDs, 1 to 64, by calls and batches in turn
//
// A step of the wall may wait until the clock is read, as in
//
//	step -2ms at read 2
//
// so that it comes in the middle of a call: the second reading of the clock from then
// on is the first to show it, if there is one before the script's end. Only readings by
// the generator count, including those by its monoclock. With several callers, any of
// their readings counts. "crash at read 2" makes a call, and ends the process when the call
// reads the clock for the second time, or after the call if it does not.
//
// A script has at most 100,000 steps and 64 callers. It asks for at most 5,000,000 IDs in all, and its
// steps take at most 876,600 hours together, about a hundred years. The error for a step beyond its own
// bounds names them.
//
// Strategy and clock are for tickflake's own generator, which `tickflake-chaos run --script`
// runs. A [Subject] of another generator ignores them.
type Script struct {
	Strategy string // or empty
	Clock    string // or empty
	Begin    string // or empty
	Callers  int    // 0 counts as 1
	Steps    []Step
}

// Step is one step of a [Script].
type Step struct {
	Do    Action
	Count int           // of IDs, or which reading of the clock a step of the wall or a crash waits for
	Rate  float64       // of a slew
	Time  time.Duration // how long, how far or how coarse, as Do says
}

// Action is what a [Step] does: the first word of its text.
type Action string

// The actions. N is [Step.Count], D is [Step.Time], R is [Step.Rate].
const (
	IDs      Action = "ids"      // N IDs in a row, or spread over D if that is not 0
	Batch    Action = "batch"    // one call for N IDs, if the generator has such a call
	Stream   Action = "stream"   // N calls to a stream, if the generator has streams
	Pass     Action = "pass"     // D passes without a call
	StepWall Action = "step"     // the wall jumps by D, at once or, if N is not 0, as the clock is read for the Nth time
	Slew     Action = "slew"     // for the next D the wall runs at rate R
	Freeze   Action = "freeze"   // for the next D the clock stands still
	Coarse   Action = "coarse"   // from now on the clock moves in multiples of D; 0s ends it
	Suspend  Action = "suspend"  // the machine sleeps for D: the wall goes on, monotonic time does not
	Leap     Action = "leap"     // the wall repeats the last second before the next whole one
	Restart  Action = "restart"  // the process is closed, and another starts on its state
	Crash    Action = "crash"    // as restart, but nothing is closed; in the middle of a call, at its Nth reading of the clock, if N is not 0
	Takeover Action = "takeover" // the process stops in the middle of a call for D, and another starts on its state meanwhile
)

// The limits of a script: it must neither take all memory nor leave the years that
// clocks can show.
const (
	maxIDs     = 5_000_000              // of all steps together
	maxBatch   = 1 << 20                // of one batch, so that it meets no limit that a generator may have on its own
	maxRead    = 1000                   // the reading that a step of the wall or a crash may wait for
	maxTime    = 100 * 8766 * time.Hour // about a hundred years, of all steps together, as the wall goes
	maxFreeze  = 2 * time.Second        // of one freeze, or of a slew below a tenth
	maxCoarse  = time.Minute
	maxCallers = 64
	maxSteps   = 100_000
	maxRate    = 1000 // of a slew
)

// Line returns the script's text on one line.
func (s Script) Line() string { return strings.ReplaceAll(s.String(), "\n", "; ") }

// String returns the script's text, one step per line.
func (s Script) String() string {
	var lines []string
	setting := func(name, value string) {
		if value != "" {
			lines = append(lines, name+" "+value)
		}
	}
	setting("strategy", s.Strategy)
	setting("clock", s.Clock)
	setting("begin", s.Begin)
	if s.Callers != 0 {
		setting("callers", strconv.Itoa(s.Callers))
	}
	for _, step := range s.Steps {
		lines = append(lines, step.String())
	}
	return strings.Join(lines, "\n")
}

// form is how an action is written. N is [Step.Count], D is [Step.Time], R is [Step.Rate]. What
// stands in tail may be left out, and is 0 then.
type form struct {
	args, tail string
	most       int           // of N
	longest    time.Duration // of D; a slew's depends on its rate
}

var forms = map[Action]form{
	IDs:      {"N", "over D", maxIDs, maxTime},
	Batch:    {"N", "", maxBatch, 0},
	Stream:   {"N", "", maxIDs, 0},
	Pass:     {"D", "", 0, maxTime},
	StepWall: {"D", "at read N", maxRead, maxTime},
	Slew:     {"R for D", "", 0, maxTime},
	Freeze:   {"D", "", 0, maxFreeze},
	Coarse:   {"D", "", 0, maxCoarse},
	Suspend:  {"D", "", 0, maxTime},
	Leap:     {"", "", 0, 0},
	Restart:  {"", "", 0, 0},
	Crash:    {"", "at read N", maxRead, 0},
	Takeover: {"D", "", 0, maxTime},
}

// String returns the step's text.
func (s Step) String() string {
	f := forms[s.Do]
	words := append([]string{string(s.Do)}, strings.Fields(f.args)...)
	if s.Do == IDs && s.Time != 0 || s.Do != IDs && s.Count != 0 {
		words = append(words, strings.Fields(f.tail)...)
	}
	for i, word := range words {
		switch word {
		case "N":
			words[i] = strconv.Itoa(s.Count)
		case "R":
			words[i] = strconv.FormatFloat(s.Rate, 'g', -1, 64)
		case "D":
			words[i] = s.Time.String()
			if s.Do == StepWall && s.Time >= 0 {
				words[i] = "+" + words[i]
			}
		}
	}
	return strings.Join(words, " ")
}

// has reports whether the script does any of the actions.
func (s Script) has(actions ...Action) bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return slices.Contains(actions, step.Do) })
}

// reach is the furthest that the wall of a valid script goes from its start.
func (s Script) reach() (total time.Duration) {
	for _, step := range s.Steps {
		total += step.reach()
	}
	return total
}

// reach is the furthest that the step moves the wall. The step is valid.
func (s Step) reach() time.Duration {
	switch s.Do {
	case Coarse:
		return 0
	case Leap:
		return time.Second
	case Slew:
		return time.Duration(float64(s.Time) * max(1, s.Rate))
	}
	return s.Time.Abs()
}
