package command

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// newMan is for packages of the program, so it is not listed.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page of each command into a directory",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return writeMan(cmd.Root(), args[0]) },
	}
}

// writeMan writes the pages of a command and of its subcommands.
func writeMan(cmd *cobra.Command, dir string) error {
	if !cmd.IsAvailableCommand() && cmd.HasParent() { // hidden, or help
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), manPage(cmd, name), 0o666); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

var (
	// roff makes a text one that shows as it is, with characters of ASCII.
	roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n.", "\n\\&.")
	// heading is a line of cobra's help that begins a part of it.
	heading = regexp.MustCompile(`(?m)^(Usage|Examples|Available Commands|Flags):$`)
)

// manPage returns the help of a command as a manual page. The lines stay as they are, for
// they hold tables. It has no date: equal versions have equal pages.
func manPage(cmd *cobra.Command, name string) []byte {
	var help bytes.Buffer
	out := cmd.OutOrStdout()
	cmd.SetOut(&help)
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	_ = cmd.Help() // writes to memory
	cmd.SetOut(out)
	text := heading.ReplaceAllStringFunc(roff.Replace(help.String()), func(line string) string {
		return ".EE\n.SH " + strings.ToUpper(strings.TrimSuffix(line, ":")) + "\n.EX"
	})
	return []byte(".TH " + strings.ToUpper(roff.Replace(name)) + ` 1 "" "` + roff.Replace(cmd.Root().Name()+" "+moduleVersion()) + "\"\n" +
		".SH NAME\n" + roff.Replace(name+" - "+cmd.Short) + "\n.SH DESCRIPTION\n.EX\n" + text + ".EE\n")
}
