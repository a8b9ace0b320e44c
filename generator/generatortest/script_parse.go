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
	lines := []int{0}      // of each step
	at := map[string]int{} // the lines of the settings
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, part := range strings.Split(line, ";") {
			words := strings.Fields(part)
			if len(words) == 0 {
				continue
			}
			problem := ""
			if setting := s.setting(words[0]); setting != nil {
				switch {
				case len(s.Steps) > 0:
					problem = "settings come before the first step"
				case at[words[0]] > 0:
					problem = "given twice"
				case len(words) != 2:
					problem = "want one word after " + words[0]
				default:
					problem = setting(words[1])
				}
				at[words[0]] = i + 1
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
		if e.Line = lines[min(e.Step, len(lines)-1)]; e.Step == 0 {
			e.Line = at[strings.Fields(e.Text)[0]]
		}
		return Script{}, e
	}
	return s, nil
}

func tooManySteps(n int) (words []string, problem string) {
	return []string{strconv.Itoa(n), "steps"}, fmt.Sprintf("want at most %d", maxSteps)
}

// setting returns what sets a setting, and returns what is wrong with its text, or nil for another word.
// Validate looks at the values.
func (s *Script) setting(name string) func(value string) (problem string) {
	text := func(field *string) func(string) string {
		return func(value string) string { *field = value; return "" }
	}
	switch name {
	case strategyW:
		return func(value string) string {
			s.Strategy = value
			if _, err := strategies.Parse(value); err != nil {
				return err.Error()
			}
			return ""
		}
	case clockW:
		return text(&s.Clock)
	case beginW:
		return text(&s.Begin)
	case callersW:
		return func(value string) string {
			n, err := strconv.Atoi(value)
			if s.Callers = n; err != nil || n < 1 {
				return fmt.Sprintf("want 1 to %d", maxCallers)
			}
			return ""
		}
	}
	return nil
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
		return s, notKnown
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
			if s.Count, err = strconv.Atoi(word); err != nil && f.args == "N" {
				return s, "want a whole number of IDs"
			} else if f.args != "N" && (err != nil || s.Count < 1) { // 0 would be at once
				return s, fmt.Sprintf("want reading 1 to %d", maxRead)
			}
		case "R":
			if s.Rate, err = strconv.ParseFloat(word, 64); err != nil {
				return s, "want a rate, such as 0.5"
			}
		case "D":
			if s.Time, err = time.ParseDuration(word); err != nil {
				return s, "want a time such as 5ms, 1.5s or 2h"
			}
			if i == 2 && s.Do == IDs && s.Time <= 0 {
				return s, "want a time above zero after over"
			}
		default:
			if word != want[i] {
				return s, "want " + f.example
			}
		}
	}
	return s, ""
}
