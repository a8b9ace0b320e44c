//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
)

// addExec adds a command that says why there is none: only Linux tells which processes a program has started, and when a
// clock was set.
func addExec(to *cobra.Command, _ *command.Console) {
	to.AddCommand(&cobra.Command{
		Use:                "exec",
		Hidden:             true,
		DisableFlagParsing: true, // its flags are those of Linux
		RunE: func(*cobra.Command, []string) error {
			return cli.Usage(errors.New("lease exec needs Linux, which alone tells what a program has started, and when its clock was set"))
		},
	})
}
