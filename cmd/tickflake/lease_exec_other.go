//go:build !unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// addExec adds nothing: there are no signals.
func addExec(*cobra.Command, *command.Console) {}
