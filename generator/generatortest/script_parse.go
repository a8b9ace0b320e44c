package generatortest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/strategies"
)

// ParseScript reads the text of a [Script] and validates it. The error names the line and
// quotes the words at fault.
func ParseScript(text string) (Script, error) {
	var s Script
	lines := []int{0} // of each step
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, part := range strings.Split(line, ";") {
			words := strings.Fields(part)
			if len(words) == 0 {
				continue
			}
			problem := ""
			if isSetting(words[0]) {
				switch {
				case len(s.Steps) > 0:
					problem = "settings come before the first step"
				case seen[words[0]]:
					problem = "given twice"
				case len(words) != 2:
					problem = "want one word after " + words[0]
				default:
					problem = s.set(words[0], words[1])
				}
				seen[words[0]] = true
			} else {
				var step Step
				step, problem = parseStep(words)
				if len(s.Steps) == maxSteps { // the rest need not be looked at
					words, problem = tooManySteps(maxSteps + 1)
				}
				s.Steps = append(s.Steps, step)
				lines = append(lines, i+1)
			}
			if problem != "" {
				return Script{}, &scriptError{Line: i + 1, Text: strings.Join(words, " "), Problem: problem}
			}
		}
	}
	if err := s.Validate(); err != nil {
		e := err.(*scriptError)
		e.Line = lines[min(e.Step, len(lines)-1)]
		return Script{}, e
	}
	return s, nil
}

func tooManySteps(n int) (words []string, problem string) {
	return []string{strconv.Itoa(n), "steps"}, fmt.Sprintf("want at most %d", maxSteps)
}

func isSetting(word string) bool {
	switch word {
	case strategyW, clockW, beginW, callersW:
		return true
	}
	return false
}

// set gives a setting its value, and returns what is wrong with that, or "".
func (s *Script) set(name, value string) string {
	var err error
	switch name {
	case strategyW:
		if _, err := strategies.Parse(value); err != nil {
			return err.Error()
		}
		s.Strategy = value
	case clockW:
		if _, err := ParseClockKind(value); err != nil {
			return err.Error()
		}
		s.Clock = value
	case beginW:
		s.Begin = value
		if _, err := s.begin(time.Unix(0, 0)); err != nil {
			return err.Error()
		}
	case callersW:
		if s.Callers, err = strconv.Atoi(value); err != nil || s.Callers < 1 || s.Callers > maxCallers {
			return fmt.Sprintf("want 1 to %d", maxCallers)
		}
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
func parseStep(words []string) (Step, string) {
	s := Step{Do: Action(words[0])}
	args := words[1:]
	switch s.Do {
	case IDs, Batch, Stream:
		var problem string
		if len(args) == 3 && s.Do == IDs && args[1] == "over" {
			if s.Time, problem = parseTime(args[2]); problem != "" {
				return s, problem
			}
			if s.Time <= 0 {
				return s, "want a time above zero after over"
			}
			args = args[:1]
		}
		if len(args) != 1 {
			if s.Do == IDs {
				return s, "want a number, such as ids 5000 or ids 5000 over 2s"
			}
			return s, fmt.Sprintf("want a number, such as %s 100", s.Do)
		}
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return s, "want a whole number of IDs"
		}
		s.Count = n
		return s, ""
	case Slew:
		if len(args) != 3 || args[1] != "for" {
			return s, "want a rate and a time, such as slew 0.5 for 2s"
		}
		rate, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return s, "want a rate, such as 0.5"
		}
		s.Rate = rate
		var problem string
		s.Time, problem = parseTime(args[2])
		return s, problem
	case Leap, Restart:
		if len(args) != 0 {
			return s, fmt.Sprintf("want nothing after %s", s.Do)
		}
		return s, ""
	case StepWall, Crash:
		var problem string
		if n := len(args); n >= 3 && args[n-3] == "at" && args[n-2] == "read" {
			var err error
			if s.Count, err = strconv.Atoi(args[n-1]); err != nil || s.Count < 1 { // 0 would be at once
				return s, fmt.Sprintf("want reading 1 to %d", maxRead)
			}
			args = args[:n-3]
		}
		switch {
		case s.Do == Crash && len(args) != 0:
			return s, "want nothing more, or a reading, such as crash at read 2"
		case s.Do == StepWall && len(args) != 1:
			return s, "want a time, such as step -2ms or step -2ms at read 2"
		case s.Do == StepWall:
			s.Time, problem = parseTime(args[0])
		}
		return s, problem
	case Pass, Freeze, Coarse, Suspend, Takeover:
		if len(args) != 1 {
			return s, fmt.Sprintf("want a time, such as %s 5ms", s.Do)
		}
		var problem string
		s.Time, problem = parseTime(args[0])
		return s, problem
	}
	return s, "not known: " + knownActions
}

func parseTime(word string) (time.Duration, string) {
	d, err := time.ParseDuration(word)
	if err != nil {
		return 0, "want a time such as 5ms, 1.5s or 2h"
	}
	return d, ""
}
