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
	Script string      `json:"script,omitempty"`
	Run    string      `json:"run"` // the command line that runs it

	by       runner
	scenario generatortest.Scenario
}

// runner tells what runs a fault.
type runner int

const (
	inVirtualTime runner = iota // tickflake-chaos run
	inTests                     // a test in the sources, as it takes more than one generator and its clock
	onKernel                    // tickflake-chaos kernel
)

// faults returns the table of all faults, in the order of lists.
func faults() []fault {
	var all []fault
	for _, s := range generatortest.Catalogue() {
		all = append(all, fault{Fault: s.Fault, Name: s.Name, What: s.What, Script: s.Script.Line(), Run: "tickflake-chaos run " + s.Fault, scenario: s})
	}
	const fleetUnder = "go test ./lease -run TestFleetUnder/"
	all = append(all,
		fault{by: inTests, Fault: "F14", Name: "skewed-fleet", What: "many processes, with clocks hours apart, claim node numbers and die", Run: fleetUnder + "F14"},
		fault{by: inTests, Fault: "F15", Name: "store-outage", What: "the store of the leases is away, slow, loses answers, or gets writes late", Run: fleetUnder + "F15"},
		fault{by: inTests, Fault: "F19", Name: "snapshot-clone", What: "a virtual machine's snapshot is restored beside its original", Run: "go test ./lease -run F19_"},
		fault{by: inTests, Fault: "F20", Name: "torn-state", What: "the state directory is damaged, full or read-only", Run: "go test ./chaos_test -run F20_"},
		fault{by: inTests, Fault: "F21", Name: "stale-read", What: "a read or a listing of the store shows an older state", Run: fleetUnder + "F21"})
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.number(), b.number()) })
	for _, f := range kernel.Faults() {
		all = append(all, fault{Fault: f.Name, Kind: f.Kind, What: f.About, Run: "tickflake-chaos kernel " + f.Name, by: onKernel})
	}
	return all
}

// number is the 5 of F5.
func (f fault) number() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(f.Fault, "F"))
	return n
}

// faultsBy returns the faults that one of the runners runs.
func faultsBy(runners ...runner) []fault {
	return slices.DeleteFunc(faults(), func(f fault) bool { return !slices.Contains(runners, f.by) })
}

// chosenFaults returns the faults with the numbers or names in args, or all if there are none,
// that one of the runners runs.
func chosenFaults(args []string, runners ...runner) ([]fault, error) {
	if len(args) == 0 {
		return faultsBy(runners...), nil
	}
	all := faults()
	is := func(f fault, arg string) bool {
		return strings.EqualFold(f.Fault, arg) || strings.EqualFold(f.Name, arg)
	}
	for _, arg := range args {
		i := slices.IndexFunc(all, func(f fault) bool { return is(f, arg) })
		switch {
		case i < 0:
			return nil, fmt.Errorf("no fault %q; 'tickflake-chaos list' and 'tickflake-chaos list --kernel' have the names", arg)
		case !slices.Contains(runners, all[i].by):
			why := "needs no kernel, as its script runs in virtual time"
			if slices.Contains(runners, inVirtualTime) || all[i].by == inTests {
				why = "has no script"
			}
			return nil, fmt.Errorf("%s %s; its command is: %s", arg, why, all[i].Run)
		}
	}
	return slices.DeleteFunc(all, func(f fault) bool {
		return !slices.ContainsFunc(args, func(arg string) bool { return is(f, arg) })
	}), nil
}

// takeFaults makes the arguments of a command faults of the runners, which the shell completes.
// own returns the arguments that are faults.
func takeFaults(cmd *cobra.Command, into *[]fault, own func(*cobra.Command, []string) []string, runners ...runner) {
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		*into, err = chosenFaults(own(cmd, args), runners...)
		return err
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, f := range faultsBy(runners...) {
			names = append(names, cobra.CompletionWithDesc(f.Fault, f.What))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
