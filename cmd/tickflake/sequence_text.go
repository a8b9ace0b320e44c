package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/sequence"
)

// sequenceState is the JSON of a sequence. A number that there is not, and
// all that a damaged cell does not tell, is null.
type sequenceState struct {
	Name       string               `json:"name"`
	State      string               `json:"state"`
	Definition *sequence.Definition `json:"definition"`
	Next       *int64               `json:"next"`
	Last       *int64               `json:"last"`
	Left       *int64               `json:"left"`
	Writes     *uint64              `json:"writes"`
	Error      string               `json:"error"`

	info sequence.Info
}

func stateOf(info sequence.Info) sequenceState {
	s := sequenceState{Name: info.Name, State: stateText(info), Definition: &info.Definition, Writes: &info.Writes, info: info}
	if info.Definition.Period == (sequence.Period{}) {
		s.Left = &info.Left
	}
	if info.Left > 0 {
		s.Next = &info.Next
	}
	if granted(info) {
		s.Last = &info.Last
	}
	return s
}

// granted reports whether a number was granted.
func granted(info sequence.Info) bool { return info.Last >= info.Definition.First() }

func stateText(info sequence.Info) string {
	switch {
	case info.WentBack:
		return "went back"
	case info.Left == 0 && info.Definition.Period == (sequence.Period{}):
		return "used up"
	}
	return "ok"
}

// printSequences writes a table, or one JSON object per line.
func printSequences(w io.Writer, all []sequenceState, format string) error {
	return command.Print(w, format, all, []string{"NAME", "STATE", "NEXT", "LAST", "LEFT", "DEFINITION"}, func(s sequenceState) []string {
		if s.Error != "" {
			return []string{s.Name, s.State, "-", "-", "-", "-"}
		}
		left := "-"
		if next, _ := s.info.Continued(); s.Left != nil && next.Max != 0 {
			left = fmt.Sprint(s.info.Left)
		}
		return []string{s.Name, s.State, nextText(s.info), choose(granted(s.info), fmt.Sprint(s.info.Last), "-"), left, s.info.Definition.String()}
	})
}

// continued says how a deleted sequence is continued, in lines for a shell.
func continued(last sequence.Info) string {
	d, ok := last.Continued()
	if !ok {
		return "# No number is left to continue with."
	}
	begins := fmt.Sprintf("it begins at %d", last.Next)
	if d.Period != (sequence.Period{}) {
		begins = "each period begins anew, but for those that you delete here and create there first"
		if !slices.Contains(periods, d.Period.String()) {
			return "# To continue it in another store, have its program create it there: " + d.String()
		}
	}
	return "# Create it in one other store, before a process asks that for a number: " + begins + ".\n# NEW is the URL of that store.\n" +
		createCommand(last.Name, d) + ` --store "$NEW"`
}

// createCommand is the command that creates a sequence with a definition of [sequence.Info.Continued].
func createCommand(name string, d sequence.Definition) string {
	text := fmt.Sprintf("%s sequence create %s --mode %s --start %d", program(), name, d.Mode, d.Start)
	if d.Max != 0 {
		text += fmt.Sprintf(" --max %d", d.Max)
	}
	if d.Stride.By() > 1 {
		text += fmt.Sprintf(" --stride %d --offset %d", d.Stride.By(), d.Stride.Offset())
	}
	if d.Mode == sequence.Segmented {
		text += fmt.Sprintf(" --step %d-%d", d.MinStep, d.MaxStep)
	}
	if d.Period != (sequence.Period{}) {
		text += fmt.Sprintf(" --period %s", d.Period)
	}
	return text
}

func nextText(info sequence.Info) string { return choose(info.Left == 0, "-", fmt.Sprint(info.Next)) }

// summary returns a sequence in one line, for messages.
func summary(info sequence.Info) string {
	next := "the next number is " + nextText(info)
	switch {
	case info.WentBack:
		next += ", but the store went back"
	case info.Definition.Period != (sequence.Period{}):
		next = fmt.Sprintf("each period begins with %d", info.Definition.First())
	case info.Left == 0:
		next = "no number is left"
	}
	return fmt.Sprintf("%s; %s", info.Definition, next)
}
