// Command tickflake-chaos puts generators of unique IDs through faults, and checks their
// promises: tickflake's own under clock faults in virtual time; and tickflake's, those of other
// projects, or any program that prints IDs, on a real Linux kernel in a virtual machine.
//
//	tickflake-chaos run --strategy borrow:1s
//	tickflake-chaos list F5 > f5.txt
//	tickflake-chaos run --script f5.txt
//	tickflake-chaos kernel step-back-1s
//	tickflake-chaos kernel --program ./mine
//
// It is the packages generator/generatortest and cmd/tickflake-chaos/kernel at a shell.
package main

import (
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel"
)

const rootHelp = `tickflake-chaos puts generators of unique IDs through faults, and checks their
promises: tickflake's own under clock faults in virtual time; and tickflake's, those
of other projects, or a program of yours, on a real Linux kernel.

Exit codes:
  0        all promises were kept
  1        a promise was broken, or something asked for could not be run
  2        usage error: an unknown command, flag or fault, or a bad value
  130 143  stopped by SIGINT (Ctrl-C) or SIGTERM; the results so far are written`

func main() {
	kernel.Main() // first: in the virtual machine of 'tickflake-chaos kernel' it never returns
	command.Main(newRoot)
}

func newRoot(c *command.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "tickflake-chaos",
		Short: "Put generators of unique IDs through faults",
		Long:  rootHelp,
		Example: `  tickflake-chaos run F5 --strategy borrow:1s
  tickflake-chaos kernel step-back-1s`,
	}
	root.AddCommand(newRun(c), newList(c), newKernel(c))
	return root
}
