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
	return t.UTC(), nil
}

// parseStep reads one step, and returns what is wrong with it, or "".
func parseStep(words []string) (s Step, problem string) {
	s.Do = Action(words[0])
	f, ok := forms[s.Do]
	if !ok {
		return s, "not known: want ids, batch, stream, pass, step, slew, freeze, coarse, suspend, leap, restart, crash or takeover"
	}
	want := strings.Fields(f.args)
	if len(words)-1 > len(want) {
		want = strings.Fields(f.args + " " + f.tail)
	}
	if len(want) != len(words)-1 {
		return s, f.want(s.Do)
	}
	for i, word := range words[1:] {
		var err error
		ok := true
		switch want[i] {
		case "N":
			s.Count, err = strconv.Atoi(word)
			ok = s.Count >= 1 && s.Count <= f.most
		case "R":
			s.Rate, err = strconv.ParseFloat(word, 64)
			switch ok = s.Rate >= 0 && s.Rate <= maxRate; { // NaN is neither
			case s.Rate < 0.1:
				f.longest = maxFreeze
			case ok && s.Rate > 1:
				f.longest = time.Duration(float64(maxTime) / s.Rate)
			}
		case "D":
			s.Time, err = time.ParseDuration(word)
			ok = s.Time.Abs() <= f.longest && (s.Time >= 0 || s.Do == StepWall) && (s.Time != 0 || s.Do != IDs) // ids over 0s would be at once
		default:
			ok = word == want[i]
		}
		if err != nil || !ok {
			return s, f.want(s.Do)
		}
	}
	return s, ""
}

// want says how the action is written.
func (f form) want(do Action) string {
	text := "want " + strings.TrimSpace(string(do)+" "+f.args)
	if f.tail != "" {
		text += " [" + f.tail + "]"
	}
	if f.most > 0 {
		text += fmt.Sprintf("; N is 1 to %d", f.most)
	}
	if strings.Contains(f.args, "R") {
		text += fmt.Sprintf("; R is 0 to %d, such as 0.5", maxRate)
	}
	if f.longest > 0 {
		text += fmt.Sprintf("; D is a time such as 5ms, of at most %s", f.longest)
	}
	return text
}
