package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
	"github.com/tickflake/tickflake/generator/generatortest"
)

// fault is a fault, and its JSON in a list.
type fault struct {
	Fault  string      `json:"fault"`          // "F5", or the name of one on a real kernel
	Name   string      `json:"name,omitempty"` // "repeated-steps"
	Kind   kernel.Kind `json:"kind,omitempty"`
	What   string      `json:"what"`
	Script string      `json:"script,omitempty"` // empty: it is a test in the sources, or a fault on a real kernel
	Run    string      `json:"run"`              // the command line that runs it

	scenario generatortest.Scenario
}

// scripted returns the faults that have a script.
func scripted() (all []fault) {
	for _, s := range generatortest.Catalogue() {
		all = append(all, fault{Fault: s.Fault, Name: s.Name, What: s.What, Script: s.Script.Line(), Run: "tickflake-chaos run " + s.Fault, scenario: s})
	}
	return all
}

// catalogue returns the faults in virtual time by their numbers, with those that take more than one generator and its
// clock: tests in the sources.
func catalogue() []fault {
	const fleetUnder = "go test ./lease -run TestFleetUnder/"
	all := append(scripted(),
		fault{Fault: "F14", Name: "skewed-fleet", What: "many processes, with clocks hours apart, claim node numbers and die", Run: fleetUnder + "F14"},
		fault{Fault: "F15", Name: "store-outage", What: "the store of the leases is away, slow, loses answers, or gets writes late", Run: fleetUnder + "F15"},
		fault{Fault: "F19", Name: "snapshot-clone", What: "a virtual machine's snapshot is restored beside its original", Run: "go test ./lease -run F19_"},
		fault{Fault: "F20", Name: "torn-state", What: "the state directory is damaged, full or read-only", Run: "go test ./chaos_test -run F20_"},
		fault{Fault: "F21", Name: "stale-read", What: "a read or a listing of the store shows an older state", Run: fleetUnder + "F21"})
	number := func(f fault) int { n, _ := strconv.Atoi(f.Fault[1:]); return n } // the 5 of F5
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(number(a), number(b)) })
	return all
}

// onKernel returns the faults on a real kernel.
func onKernel() (all []fault) {
	for _, f := range kernel.Faults() {
		all = append(all, fault{Fault: f.Name, Kind: f.Kind, What: f.About, Run: "tickflake-chaos kernel " + f.Name})
	}
	return all
}

// choose returns the faults with the numbers or names, or all if none is given.
func choose(all []fault, names []string) ([]fault, error) {
	is := func(f fault, name string) bool {
		return strings.EqualFold(f.Fault, name) || strings.EqualFold(f.Name, name)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(f fault) bool { return is(f, name) }) {
			return nil, fmt.Errorf("no fault %q for this command; 'tickflake-chaos list' and 'tickflake-chaos list --kernel' have the names, and how each is run", name)
		}
	}
	return slices.DeleteFunc(all, func(f fault) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return is(f, name) })
	}), nil
}

// takeFaults makes the arguments of a command faults of all.
func takeFaults(cmd *cobra.Command, into *[]fault, all []fault) {
	cmd.Args = func(_ *cobra.Command, args []string) (err error) {
		*into, err = choose(all, args)
		return err
	}
}
