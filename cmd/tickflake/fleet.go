package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const leaseFleetHelp = `Show which node numbers a store has, and from when on; or, with --nodes, create its
fleet with them.

Stores with one layout and different numbers are sites of it, such as regions:
they need nothing in common, and their IDs never meet. Create each fleet before a
process uses the store: else the first process creates one with all numbers. A store
never gets more numbers, and its floor never moves; 'tickflake lease end' takes
numbers away. To create the same fleet again is no error.

NODES is a number, a range such as 512-1023, or a part of a layout that names its
parts, such as datacenter=3. --later gives a number that begins later than the floor.

With --format json the fleet is an object with the fields layout, from, to, floor,
ended and left (to which stores numbers were moved).`

const leaseEndHelp = `Give node numbers away for good: those in NODES, at the lower or the upper end of
what the store has, or all. It prints the command that creates the fleet of another
store with them: run that once, for one store, before a process uses it.
docs/move.md has all steps.

No process is granted anything with these numbers by this store any more, whatever
any clock says. That cannot be undone; to stay on the same server, use another
namespace of it. Running processes issue the rest of their grants, then use another
number, or fail with the name of the new store if there is none.

A number whose limit is more than two windows ahead of this clock begins later in
the other store. If most limits lie that far ahead, without those of reservations,
the command refuses, since the clock is wrong. It writes each number once. If it
ends early, run it again: it continues, and prints the same numbers.`

// nodesOf reads a node number, a range, or a part of a layout as in datacenter=3.
func nodesOf(text string, layout snowflake.Layout) (from, to int64, err error) {
	name, value, isPart := strings.Cut(text, "=")
	if !isPart {
		return nodeRange(text)
	}
	n, err := wholeNumber(value)
	if len(layout.Parts) == 0 || layout.Parts[0].Name != name {
		return 0, 0, cli.Usage(fmt.Errorf("the node numbers of the layout %s do not begin with %q: give them as a range such as 512-1023", layout, name))
	}
	rest := layout.NodeBits - layout.Parts[0].Bits
	if err != nil || n < 0 || n >= 1<<layout.Parts[0].Bits {
		return 0, 0, cli.Usage(fmt.Errorf("want %s from 0 to %d, got %q", name, 1<<layout.Parts[0].Bits-1, value))
	}
	return n << rest, (n+1)<<rest - 1, nil
}

func newLeaseFleet(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show which node numbers a store has, or create its fleet",
		Long:  leaseFleetHelp,
		Example: `  tickflake lease fleet --store etcd://10.0.0.1:2379
  tickflake lease fleet --nodes 512-1023 --store etcd://eu.example.com
  tickflake lease fleet --datacenter 3 --layout twitter --store etcd://eu.example.com`,
		Args: cobra.NoArgs,
	}
	l := newLeases(c, cmd, true)
	format := formatFlag(cmd)
	nodes := cmd.Flags().String("nodes", "", "`NODES` to create a fleet with")
	datacenter := cmd.Flags().String("datacenter", "", "`N`, the same as --nodes datacenter=N")
	var want lease.Fleet
	command.Flag(cmd, "floor", "`DATE` before which no process claims a number", &want.Floor, parseUntil)
	later := cmd.Flags().StringArray("later", nil, "`NODE=DATE` of a number that begins later; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("nodes", "datacenter")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *datacenter != "" {
			*nodes = "datacenter=" + *datacenter
		}
		if *nodes == "" && (len(*later) > 0 || cmd.Flags().Changed("floor")) {
			return cli.Usage(errors.New("--floor and --later need --nodes"))
		}
		for _, text := range *later {
			node, until, _ := strings.Cut(text, "=")
			n, err := wholeNumber(node)
			at, late := parseUntil(until)
			if err = cmp.Or(err, late); err != nil {
				return cli.Usage(fmt.Errorf("--later %q: %w", text, err))
			}
			want.Later = append(want.Later, lease.Later{Node: n, Until: at})
		}
		l.makes = *nodes != ""
		bounded, cancel := l.within(cmd.Context())
		defer cancel()
		made, err := l.missing(bounded)
		if err != nil {
			return l.ended(cmd.Context(), bounded, err)
		}
		f, err := ask(cmd.Context(), l.place, func(ctx context.Context, store stores.Store) (lease.Fleet, error) {
			f, err := lease.ReadFleet(ctx, store)
			if *nodes == "" || err != nil && !errors.Is(err, lease.ErrNeverClaimed) {
				return f, err
			}
			want.Layout = *l.layout
			if err == nil && !cmd.Flags().Changed("layout") {
				want.Layout = f.Layout
			}
			if want.From, want.To, err = nodesOf(*nodes, want.Layout); err == nil {
				err = lease.SetFleet(ctx, store, want, lease.WithTimeout(l.timeout))
			}
			if err != nil {
				return f, err
			}
			return lease.ReadFleet(ctx, store)
		})
		if err != nil && made != "" {
			_ = os.Remove(made) // unless it has cells
		}
		if err != nil {
			return err
		}
		return l.show(f, *format)
	}
	return cmd
}

// show prints a fleet.
func (l *leases) show(f lease.Fleet, format string) error {
	if format == command.FormatJSON {
		return json.NewEncoder(l.Out).Encode(f)
	}
	nodes := choose(f.Ended, "none, the fleet has ended", fmt.Sprintf("%d to %d", f.From, f.To))
	floor := choose(f.Floor.IsZero(), "none", f.Floor.Format(time.RFC3339Nano))
	rows := [][]string{{"layout", f.Layout.String()}, {"nodes", nodes}, {"floor", floor}}
	for _, m := range f.Left {
		rows = append(rows, []string{"left", fmt.Sprintf("%d to %d, to %s", m.From, m.To, cell.Where(m.Store))})
	}
	return command.Table(l.Out, nil, rows)
}

func newLeaseEnd(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end [NODES]",
		Short: "Give node numbers away for good, to another store",
		Long:  leaseEndHelp,
		Example: `  tickflake lease end --store ./ids --to etcd://10.0.0.1:2379 --yes
  tickflake lease end 512-1023 --store etcd://10.0.0.1 --to etcd://10.0.9.1`,
		Args: cobra.MaximumNArgs(1),
	}
	l := newLeases(c, cmd, false)
	l.timeout = time.Minute // it writes all node numbers
	timeout := cmd.Flags().Lookup("timeout")
	timeout.Usage = strings.Replace(timeout.Usage, "5s", l.timeout.String(), 1)
	format := formatFlag(cmd)
	to := cmd.Flags().String("to", "", "`URL` or name of the new store, for the errors of processes that still use this one; user, password and options of a URL are left out")
	_ = cmd.MarkFlagRequired("to") // it was just added
	command.CompleteFlag(cmd, "to")
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if strings.Contains(*to, "/") { // else it is a name for people
			*to = absolute(*to)
		}
		name := publicName(*to)
		if err := cell.CheckTo(name); err != nil {
			return cli.Usage(fmt.Errorf("--to: %w", err))
		}
		f, err := ask(ctx, l.place, lease.ReadFleet)
		if err == nil && len(args) > 0 {
			f.From, f.To, err = nodesOf(args[0], f.Layout)
		}
		if err != nil {
			return err
		}
		which := fmt.Sprintf("the node numbers %d to %d", f.From, f.To)
		question := fmt.Sprintf("%s continue in %s, and nothing is granted with them by %s any more, for good\nend them?", which, name, l.name())
		if err := l.Confirm(ctx, *yes, "end", question, fmt.Errorf("%s have not ended", which)); err != nil {
			return err
		}
		now := time.Now().UTC()
		other, err := ask(ctx, l.place, func(ctx context.Context, store stores.Store) (lease.Fleet, error) {
			return lease.End(ctx, store, f.From, f.To, name, lease.WithTimeout(l.timeout))
		})
		if err != nil {
			return err
		}
		store, layout := quoted(*to), other.Layout.String()
		if name != *to || !strings.Contains(*to, "/") { // it has a password or a namespace, or is a name for people
			store = `"$NEW"`
		}
		found := fmt.Sprintf("%s lease fleet --store %s --layout %s --nodes %d-%d", program(), store, quoted(layout), f.From, f.To)
		if !other.Floor.IsZero() {
			found += " --floor " + other.Floor.Format(time.RFC3339Nano)
		}
		for _, b := range other.Later {
			found += fmt.Sprintf(" \\\n  --later %d=%s", b.Node, b.Until.Format(time.RFC3339Nano))
		}
		if *format == command.FormatJSON {
			return json.NewEncoder(l.Out).Encode(struct {
				lease.Fleet
				Store   string    `json:"store"`
				Command string    `json:"command"`
				Now     time.Time `json:"now"` // that limits were compared with
			}{other, name, found, now})
		}
		fmt.Fprintf(l.Out, "# %s have left for %s. Create its fleet with them, once, before a process uses that store:\n", which, name)
		if store == `"$NEW"` {
			fmt.Fprintf(l.Out, "# NEW is its URL.\n")
		}
		if len(other.Later) > 0 {
			fmt.Fprintf(l.Out, "# Those with --later were granted more than two windows ahead of the clock when they left; this one says %s.\n", now.Format(time.RFC3339))
		}
		_, err = fmt.Fprintln(l.Out, found)
		return err
	}
	return cmd
}
