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

// fault is a fault of a list.
type fault struct {
	generatortest.Scenario        // its Fault is "F5", or the name of one on a real kernel, and its Name "repeated-steps", or the kind
	run                    string // the command line of a test in the sources; empty: none
}

// scripted returns the faults that have a script.
func scripted() (all []fault) {
	for _, s := range generatortest.Catalogue() {
		all = append(all, fault{Scenario: s})
	}
	return all
}

// catalogue returns the faults in virtual time by their numbers, with those that take more than one generator and its
// clock: tests in the sources.
func catalogue() []fault {
	all := scripted()
	for _, f := range [][4]string{
		{"F14", "skewed-fleet", "many processes, with clocks hours apart, claim node numbers and die", "go test ./lease -run TestFleetUnder/F14"},
		{"F15", "store-outage", "the store of the leases is away, slow, loses answers, or gets writes late", "go test ./lease -run TestFleetUnder/F15"},
		{"F19", "snapshot-clone", "a virtual machine's snapshot is restored beside its original", "go test ./lease -run F19_"},
		{"F20", "torn-state", "the state directory is damaged, full or read-only", "go test ./chaos_test -run F20_"},
		{"F21", "stale-read", "a read or a listing of the store shows an older state", "go test ./lease -run TestFleetUnder/F21"},
	} {
		all = append(all, fault{generatortest.Scenario{Fault: f[0], Name: f[1], What: f[2]}, f[3]})
	}
	number := func(f fault) int { n, _ := strconv.Atoi(f.Fault[1:]); return n } // the 5 of F5
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(number(a), number(b)) })
	return all
}

// onKernel returns the faults on a real kernel.
func onKernel() (all []fault) {
	for _, f := range kernel.Faults() {
		all = append(all, fault{Scenario: generatortest.Scenario{Fault: f.Name, Name: string(f.Kind), What: f.About}})
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
