package generatortest

import (
	"fmt"
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
//	callers N         N goroutines issue the IDs, 1 to 64, by calls, batches and
//	                  streams in turn
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
// A script has at most 100,000 steps and 64 callers. It asks for at most 20,000,000 IDs
// in all and 1,048,576 in one batch, and its steps take at most 876,600 hours together,
// about a hundred years. A freeze, or a slew at a rate below 0.1, lasts 2s at most; no
// slew is faster than 1000, no clock coarser than 1m, and no step of the wall waits for
// more than 1000 readings.
//
// Strategy and clock are for tickflake's own generator, which `tickflake-chaos script`
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

// The settings' words.
const (
	strategyW = "strategy"
	clockW    = "clock"
	beginW    = "begin"
	callersW  = "callers"
)

// The limits of a script: it must neither take all memory nor leave the years that
// clocks can show.
const (
	maxIDs     = 20_000_000             // of all steps together
	maxBatch   = 1 << 20                // of one batch, so that it meets no limit that a generator may have on its own
	maxRead    = 1000                   // the reading that a step of the wall or a crash may wait for
	maxTime    = 100 * 8766 * time.Hour // about a hundred years, of all steps together, as the wall goes
	maxFreeze  = 2 * time.Second        // of one freeze, or of a slew below a tenth
	maxCoarse  = time.Minute
	maxCallers = 64
	maxSteps   = 100_000
	maxRate    = 1000 // of a slew
)

// String returns the script's text, one step per line.
func (s Script) String() string { return strings.Join(s.lines(), "\n") }

// Line returns the script's text on one line.
func (s Script) Line() string { return strings.Join(s.lines(), "; ") }

func (s Script) lines() []string {
	var lines []string
	setting := func(name, value string) {
		if value != "" {
			lines = append(lines, name+" "+value)
		}
	}
	setting(strategyW, s.Strategy)
	setting(clockW, s.Clock)
	setting(beginW, s.Begin)
	if s.Callers != 0 {
		setting(callersW, strconv.Itoa(s.Callers))
	}
	for _, step := range s.Steps {
		lines = append(lines, step.String())
	}
	return lines
}

// form is how an action is written. N is [Step.Count], D is [Step.Time], R is [Step.Rate]. What
// stands in tail may be left out, and is 0 then.
type form struct {
	do         Action
	args, tail string
	example    string // for who writes it otherwise
}

var forms = []form{
	{IDs, "N", "over D", "a number, such as ids 5000 or ids 5000 over 2s"},
	{Batch, "N", "", "a number, such as batch 100"},
	{Stream, "N", "", "a number, such as stream 100"},
	{Pass, "D", "", "a time, such as pass 5ms"},
	{StepWall, "D", "at read N", "a time, such as step -2ms or step -2ms at read 2"},
	{Slew, "R for D", "", "a rate and a time, such as slew 0.5 for 2s"},
	{Freeze, "D", "", "a time, such as freeze 5ms"},
	{Coarse, "D", "", "a time, such as coarse 5ms"},
	{Suspend, "D", "", "a time, such as suspend 5ms"},
	{Leap, "", "", "nothing after leap"},
	{Restart, "", "", "nothing after restart"},
	{Crash, "", "at read N", "nothing more, or a reading, such as crash at read 2"},
	{Takeover, "D", "", "a time, such as takeover 5ms"},
}

func formOf(do Action) (form, bool) {
	i := slices.IndexFunc(forms, func(f form) bool { return f.do == do })
	if i < 0 {
		return form{args: "D"}, false
	}
	return forms[i], true
}

// takes reports whether the action has a value of a kind: N, D or R.
func (f form) takes(kind string) bool {
	return slices.Contains(strings.Fields(f.args+" "+f.tail), kind)
}

const notKnown = "not known: want ids, batch, stream, pass, step, slew, freeze, coarse, suspend, leap, restart, crash or takeover"

// String returns the step's text.
func (s Step) String() string {
	f, _ := formOf(s.Do)
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
	for _, step := range s.Steps {
		for _, action := range actions {
			if step.Do == action {
				return true
			}
		}
	}
	return false
}

// Validate returns an error for the first step or setting that cannot be done, or nil. The
// error names the step. Validate does not check Strategy, which may be a word of the
// Subject's own; [ParseScript] and [SubjectOf] do.
func (s Script) Validate() error {
	fail := func(line int, text, problem string) error {
		return &scriptError{Step: line, Text: text, Problem: problem}
	}
	if s.Callers < 0 || s.Callers > maxCallers {
		return fail(0, fmt.Sprintf("%s %d", callersW, s.Callers), fmt.Sprintf("want 1 to %d", maxCallers))
	}
	if len(s.Steps) > maxSteps {
		words, problem := tooManySteps(len(s.Steps))
		return fail(0, strings.Join(words, " "), problem)
	}
	if _, err := s.begin(time.Time{}); err != nil {
		return fail(0, beginW+" "+s.Begin, err.Error())
	}
	if _, err := ParseClockKind(s.Clock); s.Clock != "" && err != nil {
		return fail(0, clockW+" "+s.Clock, err.Error())
	}
	ids, total := 0, time.Duration(0) // neither can overflow: each step is within the bounds by itself
	for i, step := range s.Steps {
		if problem := step.problem(); problem != "" {
			return fail(i+1, step.String(), problem)
		}
		if step.Do != StepWall && step.Do != Crash { // whose count is of readings
			ids += step.Count
		}
		if ids > maxIDs {
			return fail(i+1, step.String(), fmt.Sprintf("that makes %d IDs in all: at most %d", ids, maxIDs))
		}
		if total += step.reach(); total > maxTime {
			return fail(i+1, step.String(), fmt.Sprintf("that makes %s in all, there and back: at most %s", total, maxTime))
		}
	}
	return nil
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

// problem returns what is wrong with the step on its own, or "".
func (s Step) problem() string {
	f, ok := formOf(s.Do)
	if !ok {
		return notKnown
	}
	most, longest := maxIDs, time.Duration(maxTime)
	switch s.Do {
	case Batch:
		most = maxBatch
	case Freeze:
		longest = maxFreeze
	case Coarse:
		longest = maxCoarse
	case Slew:
		if s.Rate < 0.1 {
			longest = maxFreeze
		} else if s.Rate > 1 {
			longest = time.Duration(float64(maxTime) / s.Rate)
		}
	}
	switch {
	case f.args == "N" && (s.Count < 1 || s.Count > most):
		return fmt.Sprintf("want 1 to %d IDs", most)
	case f.tail == "at read N" && (s.Count < 0 || s.Count > maxRead):
		return fmt.Sprintf("want reading 1 to %d", maxRead)
	case s.Do == Slew && !(s.Rate >= 0 && s.Rate <= maxRate): // NaN is neither
		return fmt.Sprintf("want a rate from 0 to %d, such as 0.5", maxRate)
	case s.Count != 0 && !f.takes("N"):
		return fmt.Sprintf("it takes no number of IDs, but has %d", s.Count)
	case s.Time != 0 && !f.takes("D"):
		return fmt.Sprintf("it takes no time, but has %s", s.Time)
	case s.Rate != 0 && !f.takes("R"):
		return fmt.Sprintf("it takes no rate, but has %g", s.Rate)
	case s.Do != StepWall && s.Time < 0:
		return "the time is negative"
	case s.Time.Abs() > longest:
		return fmt.Sprintf("the time is longer than %s", longest)
	}
	return ""
}

// scriptError is the error for a [Script] or its text. It is a type because [ParseScript]
// adds the line to an error of Validate.
type scriptError struct {
	Line    int    // of the text, from 1 on, or 0 if there is no text
	Step    int    // from 1 on, or 0 for a setting
	Text    string // the words at fault
	Problem string // what is wrong with them, and what would be right
}

func (e *scriptError) Error() string {
	where := "script"
	if e.Line > 0 {
		where = fmt.Sprintf("script line %d", e.Line)
	} else if e.Step > 0 {
		where = fmt.Sprintf("script step %d", e.Step)
	}
	text := e.Text
	if runes := []rune(text); len(runes) > 60 { // whole characters
		text = string(runes[:60]) + "…"
	}
	return fmt.Sprintf("%s: %q: %s", where, text, e.Problem)
}
