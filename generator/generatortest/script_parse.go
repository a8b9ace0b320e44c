package generatortest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/strategies"
)

// ParseScript reads the text of a [Script], and checks it. The error names the line and
// quotes the words at fault.
func ParseScript(text string) (Script, error) {
	var p parser
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, part := range strings.Split(line, ";") {
			words := strings.Fields(part)
			if len(words) == 0 {
				continue
			}
			if problem := p.read(words); problem != "" {
				quoted := []rune(strings.Join(words, " ")) // whole characters
				if len(quoted) > 60 {
					quoted = append(quoted[:60], '…')
				}
				return Script{}, fmt.Errorf("script line %d: %q: %s", i+1, string(quoted), problem)
			}
		}
	}
	return p.Script, nil
}

// parser has what was read so far.
type parser struct {
	Script
	given []string      // settings
	ids   int           // of all steps
	reach time.Duration // of all steps
}

// read reads a setting or a step, and returns what is wrong with it, or "".
func (p *parser) read(words []string) (problem string) {
	name := words[0]
	switch {
	case !slices.Contains([]string{"strategy", "clock", "begin", "callers"}, name):
		return p.step(words)
	case len(p.Steps) > 0:
		return "settings come before the first step"
	case slices.Contains(p.given, name):
		return "given twice"
	case len(words) != 2:
		return "want one word after " + name
	}
	p.given = append(p.given, name)
	var err error
	switch text := words[1]; name {
	case "strategy":
		p.Strategy = text
		_, err = strategies.Parse(text)
	case "clock":
		p.Clock = text
		_, err = ParseClockKind(text)
	case "begin":
		p.Begin = text
		_, err = p.begin(time.Time{})
	case "callers":
		if p.Callers, err = strconv.Atoi(text); err != nil || p.Callers < 1 || p.Callers > maxCallers {
			return fmt.Sprintf("want 1 to %d", maxCallers)
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// step adds a step.
func (p *parser) step(words []string) (problem string) {
	s, problem := parseStep(words)
	if problem != "" {
		return problem
	}
	if s.Do != StepWall && s.Do != Crash { // whose count is of readings
		p.ids += s.Count
	}
	p.reach += s.reach() // like ids, it cannot overflow: each step is within the bounds by itself
	switch p.Steps = append(p.Steps, s); {
	case len(p.Steps) > maxSteps:
		return fmt.Sprintf("want at most %d steps", maxSteps)
	case p.ids > maxIDs:
		return fmt.Sprintf("that makes %d IDs in all: at most %d", p.ids, maxIDs)
	case p.reach > maxTime:
		return fmt.Sprintf("that makes %s in all, there and back: at most %s", p.reach, maxTime)
	}
	return ""
}

// noon is when the wall begins unless a script says otherwise.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// begin is the wall's time at the start, for a generator whose time ends at end.
func (s Script) begin(end time.Time) (time.Time, error) {
	if s.Begin == "" {
		return noon, nil
	}
	if before, ok := strings.CutPrefix(s.Begin, "end"); ok {
		d, err := time.ParseDuration(before)
		if err != nil || d.Abs() > maxTime {
			return time.Time{}, fmt.Errorf("want a time after end, such as end-5ms, of at most %s", maxTime)
		}
		return end.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s.Begin)
	if err != nil {
		return time.Time{}, fmt.Errorf("want a time such as %s or end-5ms", noon.Format(time.RFC3339))
	}
	if t.Year() < 1900 || t.Year() > 2150 {
		return time.Time{}, fmt.Errorf("want a year from 1900 to 2150")
	}
	return t.UTC(), nil
}

// parseStep reads one step, and returns what is wrong with it, or "".
func parseStep(words []string) (s Step, problem string) {
	s.Do = Action(words[0])
	f, ok := formOf(s.Do)
	if !ok {
		return s, "not known: want ids, batch, stream, pass, step, slew, freeze, coarse, suspend, leap, restart, crash or takeover"
	}
	want := strings.Fields(f.args)
	if args := words[1:]; len(args) > len(want) {
		want = strings.Fields(f.args + " " + f.tail)
	}
	if len(want) != len(words)-1 {
		return s, "want " + f.example
	}
	for i, word := range words[1:] {
		var err error
		switch want[i] {
		case "N":
			s.Count, err = strconv.Atoi(word)
			switch wrong := err != nil || s.Count < 1 || s.Count > f.most; {
			case wrong && f.args == "N":
				return s, fmt.Sprintf("want 1 to %d IDs", f.most)
			case wrong:
				return s, fmt.Sprintf("want reading 1 to %d", f.most)
			}
		case "R":
			s.Rate, err = strconv.ParseFloat(word, 64)
			switch {
			case err != nil || !(s.Rate >= 0 && s.Rate <= maxRate): // NaN is neither
				return s, fmt.Sprintf("want a rate from 0 to %d, such as 0.5", maxRate)
			case s.Rate < 0.1:
				f.longest = maxFreeze
			case s.Rate > 1:
				f.longest = time.Duration(float64(maxTime) / s.Rate)
			}
		case "D":
			s.Time, err = time.ParseDuration(word)
			switch {
			case err != nil:
				return s, "want a time such as 5ms, 1.5s or 2h"
			case s.Do == IDs && s.Time <= 0: // 0 would be at once
				return s, "want a time above zero after over"
			case s.Do != StepWall && s.Time < 0:
				return s, "the time is negative"
			case s.Time.Abs() > f.longest:
				return s, fmt.Sprintf("the time is longer than %s", f.longest)
			}
		default:
			if word != want[i] {
				return s, "want " + f.example
			}
		}
	}
	return s, ""
}
