package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ChoiceFlag adds a flag that takes one of some words. The first is the default.
func ChoiceFlag(cmd *cobra.Command, name, usage string, choices ...string) *string {
	value := choices[0]
	list := strings.Join(choices[:len(choices)-1], ", ") + " or " + choices[len(choices)-1]
	cmd.Flags().Func(name, fmt.Sprintf("%s: %s (default %q)", usage, list, value), func(s string) error {
		if !slices.Contains(choices, s) {
			return fmt.Errorf("want %s, got %q", list, s)
		}
		value = s
		return nil
	})
	CompleteFlag(cmd, name, choices...)
	return &value
}

// CompleteFlag lets the shell complete the value of a flag that was just added.
func CompleteFlag(cmd *cobra.Command, name string, values ...cobra.Completion) {
	// It fails for a flag that does not exist, and for one completed twice.
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
