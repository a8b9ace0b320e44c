//go:build !linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// addExec adds nothing: only Linux tells which processes a program has started, and when a clock was set.
func addExec(*cobra.Command, *command.Console) {}
