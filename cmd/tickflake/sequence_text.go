package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
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
	s := sequenceState{Name: info.Name, State: stateText(info), Definition: &info.Definition, Left: &info.Left, Writes: &info.Writes, info: info}
	if info.Left > 0 {
		s.Next = &info.Next
	}
	if granted(info) {
		s.Last = &info.Last
	}
	return s
}

// statesOf returns the states of sequences, those with damaged cells among them, in the order
// of their names, and the errors of damaged cells that are no sequence's.
func statesOf(all []sequence.Info, damage error) (states []sequenceState, foreign []error) {
	for _, info := range all {
		states = append(states, stateOf(info))
	}
	cells := damagedCells(damage)
	for _, cell := range cells {
		if name, ok := strings.CutPrefix(cell.Key, "seq/"); ok && sequence.CheckName(name) == nil {
			states = append(states, sequenceState{Name: name, State: "damaged", Error: cell.Error()})
		} else {
			foreign = append(foreign, cell)
		}
	}
	if damage != nil && len(cells) == 0 {
		foreign = append(foreign, damage)
	}
	slices.SortFunc(states, func(a, b sequenceState) int { return cmp.Compare(a.Name, b.Name) })
	return states, foreign
}

// damagedCells returns the errors of the cells that a store could not list.
func damagedCells(err error) (all []*stores.DamagedError) {
	switch e := err.(type) {
	case *stores.DamagedError:
		return append(all, e)
	case interface{ Unwrap() error }:
		return damagedCells(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, damagedCells(err)...)
		}
	}
	return all
}

// granted reports whether a number was granted.
func granted(info sequence.Info) bool { return info.Last >= info.Definition.First() }

func stateText(info sequence.Info) string {
	switch {
	case info.WentBack:
		return "went back"
	case info.MovedTo != "":
		return "moved"
	case info.Left == 0:
		return "used up"
	}
	return "ok"
}

// writeSequences writes a table, or one JSON object per line.
func writeSequences(w io.Writer, all []sequenceState, format string) error {
	if format == command.FormatJSON {
		encoder := json.NewEncoder(w)
		for _, s := range all {
			if err := encoder.Encode(s); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tMODE\tNEXT\tLAST\tLEFT\tUSED")
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\n", s.Name, s.State)
			continue
		}
		left, used := "-", "-"
		if s.info.Definition.HasMax() {
			left, used = fmt.Sprint(s.info.Left), usedText(s.info)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.State, s.info.Definition.Mode, nextText(s.info), lastText(s.info), left, used)
	}
	return t.Flush()
}

// writeSequence describes a sequence.
func writeSequence(w io.Writer, info sequence.Info) error {
	left := "without a maximum"
	if info.Definition.HasMax() {
		left = fmt.Sprintf("%d up to the maximum %d (%s used)", info.Left, info.Definition.Max, usedText(info))
	}
	state := stateText(info)
	if info.WentBack {
		state += ": the store lost writes; see 'tickflake sequence --help'"
	}
	_, err := fmt.Fprintf(w, "name        %s\nstate       %s\ndefinition  %s\nnext        %s\nlast        %s\nleft        %s\nwrites      %d\n",
		info.Name, state, info.Definition, nextText(info), lastText(info), left, info.Writes)
	return err
}

// usedText returns the part of the numbers that was granted, rounded down: 100% is all.
func usedText(info sequence.Info) string {
	used := 1 + float64((info.Last-info.Definition.First())/info.Definition.Stride.By())
	return fmt.Sprintf("%.1f%%", math.Floor(1000*used/(used+float64(info.Left)))/10)
}

func nextText(info sequence.Info) string {
	if info.Left == 0 {
		return "-"
	}
	return fmt.Sprint(info.Next)
}

func lastText(info sequence.Info) string {
	if !granted(info) {
		return "-"
	}
	return fmt.Sprint(info.Last)
}

// summary returns a sequence in one line, for messages.
func summary(info sequence.Info) string {
	next := "the next number is " + nextText(info)
	switch {
	case info.WentBack:
		next += ", but the store went back"
	case info.Left == 0:
		next = "no number is left"
	}
	return fmt.Sprintf("%s; %s", info.Definition, next)
}
