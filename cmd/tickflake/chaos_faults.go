package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/generator/generatortest"
)

// elsewhere are the faults that no script can express, since they take more than one
// generator and its clock.
var elsewhere = []scenarioJSON{
	{Fault: "F14", Name: "skewed-fleet", What: "many processes, with clocks hours apart, claim node numbers and die", Run: fleetUnder + "F14"},
	{Fault: "F15", Name: "store-outage", What: "the store of the leases is away, slow, loses answers, or gets writes late", Run: fleetUnder + "F15"},
	{Fault: "F19", Name: "snapshot-clone", What: "a virtual machine's snapshot is restored beside its original", Run: "go test ./lease -run F19_"},
	{Fault: "F20", Name: "torn-state", What: "the state directory is damaged, full or read-only", Run: "go test ./chaos_test -run F20_"},
	{Fault: "F21", Name: "stale-read", What: "a read or a listing of the store shows an older state", Run: fleetUnder + "F21"},
}

const fleetUnder = "go test ./lease -run TestFleetUnder/"

// elsewhereOf returns the fault with a number or a name, if it is one of elsewhere.
func elsewhereOf(s string) (scenarioJSON, bool) {
	i := slices.IndexFunc(elsewhere, func(e scenarioJSON) bool { return strings.EqualFold(s, e.Fault) || strings.EqualFold(s, e.Name) })
	if i < 0 {
		return scenarioJSON{}, false
	}
	return elsewhere[i], true
}

// knownFault returns the fault with a number or a name.
func knownFault(s string) (string, error) {
	var known []string
	for _, scenario := range generatortest.Catalogue() {
		if strings.EqualFold(s, scenario.Fault) || strings.EqualFold(s, scenario.Name) {
			return scenario.Fault, nil
		}
		if !slices.Contains(known, scenario.Fault) {
			known = append(known, scenario.Fault)
		}
	}
	if e, ok := elsewhereOf(s); ok {
		return "", fmt.Errorf("%s is no script: in the sources of tickflake, run '%s'", e.Fault, e.Run)
	}
	last := len(known) - 1
	return "", fmt.Errorf("want %s or %s, got %q", strings.Join(known[:last], ", "), known[last], s)
}

func (k *chaos) faultCompletions(*cobra.Command, []string, string) (faults []cobra.Completion, _ cobra.ShellCompDirective) {
	if k.kernel {
		return kernelFaultCompletions(), cobra.ShellCompDirectiveNoFileComp
	}
	for _, scenario := range generatortest.Catalogue() {
		faults = append(faults, cobra.CompletionWithDesc(scenario.Fault, scenario.What))
	}
	return faults, cobra.ShellCompDirectiveNoFileComp
}

func listedCompletions(*cobra.Command, []string, string) (faults []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, s := range listed(nil) {
		faults = append(faults, cobra.CompletionWithDesc(s.Fault, s.What))
	}
	return faults, cobra.ShellCompDirectiveNoFileComp
}
