package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

const leaseExportHelp = `End the fleet of a store, and print the floors with which it continues in another
store: the layout, and the limit of each node number. 'tickflake lease import' reads
them there. docs/move.md has all steps.

No process is granted anything by this store any more, whatever any clock says. That
cannot be undone; another namespace of the same server can be imported to. While a
node number is held, the command refuses; with --running it does not, and running
processes issue the rest of their grants.

It writes each node number of the layout once. If it ends early, run it again: it
continues, and prints the same floors. It asks first, unless --yes is given.`

const leaseImportHelp = `Begin a fleet in an unused namespace of a store, with the floors in FILE (- for
standard input) that 'tickflake lease export' printed. The first grant of each node
number begins at or above its floor, whatever any clock says.

No process gets a number before the import is complete. If it ends early, run it
again. Once it is complete, running it again does nothing. Import a file to the one
store that it names: two stores with its floors issue the same IDs. Sequences do not
move with the fleet: 'tickflake sequence delete' prints what continues each.`

// moveFlags adds the flags of an export: the name of the new store, and --yes.
func moveFlags(cmd *cobra.Command) (to *string, yes *bool) {
	to = cmd.Flags().String("to", "", "`URL` or name of the new store, for the errors of processes that still use this one; user, password and options of a URL are left out")
	command.Require(cmd, "to")
	command.CompleteFlag(cmd, "to")
	return to, cmd.Flags().Bool("yes", false, "do not ask")
}

// allNodes gives a command that writes all node numbers a minute by default.
func allNodes(l *leases, cmd *cobra.Command) {
	l.timeout = time.Minute
	timeout := cmd.Flags().Lookup("timeout")
	timeout.Usage = strings.Replace(timeout.Usage, "5s", l.timeout.String(), 1)
}

func newLeaseExport(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "export",
		Short:       "End the fleet of a store, and print its floors for another store",
		Annotations: command.Prints("floors"),
		Long:        leaseExportHelp,
		Example:     `  tickflake lease export --store ./ids --to etcd://10.0.0.1:2379 --yes > fleet.json`,
		Args:        noArgs,
	}
	l := newLeases(c, cmd, false)
	allNodes(l, cmd)
	to, yes := moveFlags(cmd)
	running := cmd.Flags().Bool("running", false, "export although processes hold node numbers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return export(cmd.Context(), c, l.place, "the fleet", *to, *yes, func(ctx context.Context, store stores.Store, to string) (any, error) {
			if *running {
				return lease.Export(ctx, store, to, lease.EvenIfRunning())
			}
			return lease.Export(ctx, store, to)
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
	switch {
	case errors.Is(err, lease.ErrHeld):
		return fmt.Errorf("%w (--running)", err)
	case err != nil:
		return err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", text)
	return err
}

func newLeaseImport(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import FILE",
		Short:   "Begin a fleet in a store with the floors of another one",
		Long:    leaseImportHelp,
		Example: `  tickflake lease import fleet.json --store etcd://10.0.0.1:2379`,
		Args:    oneDocument,
	}
	l := newLeases(c, cmd, true)
	cmd.ValidArgsFunction = nil // files
	allNodes(l, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return importing(cmd.Context(), c, l.place, args[0], func(ctx context.Context, store stores.Store, floors lease.Floors) (string, error) {
			return fmt.Sprintf("the fleet is imported, with the floors of %d node numbers that were exported to %s", len(floors.Nodes), floors.To), lease.Import(ctx, store, floors)
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
