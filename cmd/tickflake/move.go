package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const sequenceExportHelp = `End a sequence in a store, and print the floor with which it continues in another
store: its definition, and the first number that was not granted. 'tickflake sequence
import' reads it there. docs/move.md has all steps.

No process is granted a number by this store any more. That cannot be undone; another
namespace of the same server can be imported to. Running processes hand out the
numbers that they have reserved, and then their calls fail.

A sequence by period takes its periods along. None of them is exported by itself.

Running the command again prints the same floor. It asks first, unless --yes is
given.`

const sequenceImportHelp = `Begin a sequence in a store, with the floor in FILE (- for standard input) that
'tickflake sequence export' printed. The next number is the first that the old store
has not granted, and the definition is the same.

A sequence of this name from which a number was granted is refused. Running the
command again does nothing.`

// moveFlags adds the flags of an export: the name of the new store, and --yes.
func moveFlags(cmd *cobra.Command) (to *string, yes *bool) {
	to = cmd.Flags().String("to", "", "`URL` or name of the new store, for the errors of processes that still use this one; user, password and options of a URL are left out")
	command.Require(cmd, "to")
	command.CompleteFlag(cmd, "to")
	return to, cmd.Flags().Bool("yes", false, "do not ask")
}

func newSequenceExport(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "export NAME",
		Short:       "End a sequence in a store, and print its floor for another store",
		Annotations: command.Prints("floors"),
		Long:        sequenceExportHelp,
		Example:     `  tickflake sequence export orders --store ./ids --to etcd://10.0.0.1 --yes > o.json`,
		Args:        oneName,
	}
	s := newSequences(c, cmd)
	to, yes := moveFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return export(cmd.Context(), c, s.place, fmt.Sprintf("sequence %q", args[0]), *to, *yes, func(ctx context.Context, store stores.Store, to string) (any, error) {
			floor, err := sequence.Export(ctx, store, args[0], to)
			return floor, sequenceError(err)
		})
	}
	return cmd
}

// export asks, exports from the store of the flags, and prints the document.
func export(ctx context.Context, c *command.Console, p *place, what, to string, yes bool, do func(context.Context, stores.Store, string) (any, error)) error {
	to = publicName(to)
	if err := cell.CheckTo(to); err != nil {
		return cli.Usage(fmt.Errorf("--to: %w", err))
	}
	if err := p.mustExist(ctx); err != nil {
		return err
	}
	question := fmt.Sprintf("%s continues in %s, and nothing is granted by %s any more, for good\nexport it?", what, to, p.name())
	if err := c.Confirm(ctx, yes, "export", question, fmt.Errorf("%s was not exported", what)); err != nil {
		return err
	}
	document, err := ask(ctx, p, func(ctx context.Context, store stores.Store) (any, error) { return do(ctx, store, to) })
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", text)
	return err
}

func newSequenceImport(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import FILE",
		Short:   "Begin a sequence in a store with the floor of another one",
		Long:    sequenceImportHelp,
		Example: `  tickflake sequence import orders.json --store etcd://10.0.0.1:2379`,
		Args:    oneDocument,
	}
	s := newSequences(c, cmd)
	cmd.ValidArgsFunction = nil // files
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return importing(cmd.Context(), c, s.place, args[0], func(ctx context.Context, store stores.Store, floor sequence.Floor) (string, error) {
			if err := sequence.Import(ctx, store, floor); err != nil {
				return "", err
			}
			info, err := sequence.Inspect(ctx, store, floor.Name)
			return fmt.Sprintf("sequence %q is imported: %s", floor.Name, summary(info)), err
		})
	}
	return cmd
}

// importing reads the document of an export, imports it to the store of the flags, and says what do returns.
func importing[D any](ctx context.Context, c *command.Console, p *place, path string, do func(context.Context, stores.Store, D) (string, error)) error {
	var document D
	if err := readDocument(ctx, c, path, &document); err != nil {
		return err
	}
	done, err := ask(ctx, p, func(ctx context.Context, store stores.Store) (string, error) { return do(ctx, store, document) })
	if err == nil {
		_, err = fmt.Fprintln(c.Out, done)
	}
	return err
}

// oneDocument checks that the argument is one file.
var oneDocument = oneArg(1, "files", "one: that of the export, or - for standard input")

// readDocument reads a document of an export. Apart from white space it is as the export printed it:
// of keys in another case or twice, a decoder takes any.
func readDocument(ctx context.Context, c *command.Console, path string, into any) error {
	text, err := io.ReadAll(c.Open(ctx, path))
	if err != nil {
		return err
	}
	err = json.Unmarshal(text, into) // it fails if anything follows the document, such as another one
	var head struct{ Format int }
	if err == nil && json.Unmarshal(text, &head) == nil && head.Format > 1 {
		return nil // it may have other fields: the import itself names the version
	}
	if err == nil {
		var got bytes.Buffer
		_ = json.Compact(&got, text) // it is valid
		want, again := json.Marshal(into)
		if err = again; err == nil && !bytes.Equal(got.Bytes(), want) {
			err = errors.New("its keys or values are not as the export printed them")
		}
	}
	if err != nil {
		return fmt.Errorf("%s is not the whole document of this kind of export: %w", path, err)
	}
	return nil
}
