package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const leaseHelp = `Show the node numbers of a store, release and reserve them, and check the store.

A node number is

  held       by a process. In a directory that process is alive; elsewhere it may be
             alive until one window after UNTIL
  released   by its last process, and free
  expired    its last process ended without a release: in a directory at once,
             elsewhere one window after UNTIL; free
  reserved   until UNTIL, see 'tickflake lease reserve'
  damaged    its cell cannot be read: no process claims or overwrites it

UNTIL is the limit of the last grant. The next grant begins there, whatever any
clock says. CLOCK is how far the holder's clock is ahead of this one, to a sixth
of the holder's window; it is unknown (-) once UNTIL is past.

` + storesHelp

const leaseListHelp = `List the node numbers that were ever claimed or reserved, or those in NODES: a
number, or a range such as 0-3.

With --format json each is an object on a line of its own with the fields node,
state, owner, until, remaining (of the grant), ahead (the holder's clock, null
unless held), window, layout and error; durations are in nanoseconds.

The exit code is 1 if a cell is damaged. Each is reported on standard error, too.
So is a damaged cell that is no node number's.`

const leaseReleaseHelp = `Release a node number whose process is gone.

That is rarely needed: a number is free one window after UNTIL, and in a directory
as soon as its process has ended. It is safe if the holder is alive after all: the
next grant begins where the holder's grant ends, and the holder claims another
number. In a directory, the number of a process that is alive is not released.

The command asks first, unless --yes is given. Without a terminal, give --yes.`

// leases is common to the lease commands.
type leases struct {
	*console
	place  *place
	layout *snowflake.Layout
}

func newLease(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show, release and reserve node numbers; check a store",
		Long:  leaseHelp,
		Example: `  tickflake lease list
  tickflake lease list 7 --store 'postgres://ids@db.example.com/ids?namespace=orders'
  tickflake lease release 7 --store etcd://10.0.0.1:2379
  tickflake lease check --store redis://10.0.0.1`,
	}
	cmd.AddCommand(newLeaseList(c), newLeaseRelease(c), newLeaseReserve(c), newLeaseCheck(c))
	return cmd
}

// newLeases adds the flags of the lease commands.
func newLeases(c *console, cmd *cobra.Command) *leases {
	l := &leases{console: c, place: placeFlags(cmd), layout: layoutFlag(cmd)}
	cmd.Flags().Lookup("layout").Usage = "`NAME|SPEC` of the layout, to choose among the directories of the per-user state directory (default \"" + snowflake.Default().Name + "\")"
	return l
}

// with opens the store and calls f, within --timeout.
func (l *leases) with(ctx context.Context, f func(context.Context, stores.Store) error) error {
	bounded, cancel := l.place.within(ctx)
	defer cancel()
	store, err := l.place.open(bounded, *l.layout)
	if err == nil {
		err = f(bounded, store)
		_ = store.Close() // every write of f is complete
	}
	switch cause := context.Cause(bounded); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx) // a signal
	case cause != nil && !errors.Is(err, cause):
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func newLeaseList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [NODES]",
		Short: "List node numbers and their holders",
		Long:  leaseListHelp,
		Example: `  tickflake lease list
  tickflake lease list 0-3 --store 'etcd://10.0.0.1:2379?namespace=orders'
  tickflake lease list --format json | jq -r 'select(.state == "held").owner'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	l := newLeases(c, cmd)
	cmd.MarkFlagsMutuallyExclusive("layout", "store") // a store has one layout
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to := int64(0), int64(maxNode)
		if len(args) > 0 {
			var err error
			if from, to, err = nodeRange(args[0]); err != nil {
				return err
			}
		}
		return l.list(cmd.Context(), from, to, *format)
	}
	return cmd
}

func (l *leases) list(ctx context.Context, from, to int64, format string) error {
	var all []lease.Holding
	var foreign []error // of damaged cells that are no node number's
	path, err := l.place.missing(ctx, *l.layout)
	if err != nil {
		return err
	}
	if path == "" {
		err := l.with(ctx, func(ctx context.Context, store stores.Store) (err error) {
			all, err = lease.Inspect(ctx, store)
			if !errors.Is(err, stores.ErrDamaged) {
				return err
			}
			for _, cell := range damagedCells(err) {
				if node, ok := protocol.NodeOf(cell.Key); ok {
					all = append(all, lease.Holding{Node: node, State: lease.Damaged, Err: cell})
				} else {
					foreign = append(foreign, cell)
				}
			}
			slices.SortFunc(all, func(a, b lease.Holding) int { return cmp.Compare(a.Node, b.Node) })
			return nil
		})
		if err != nil {
			return err
		}
	} else if l.place.url != "" {
		return missingError(path)
	}
	var chosen []lease.Holding
	for _, h := range all {
		if h.Node >= from && h.Node <= to {
			chosen = append(chosen, h)
		}
	}
	if err := writeHoldings(l.out, chosen, format, time.Now()); err != nil {
		return err
	}
	if err := l.out.Flush(); err != nil {
		return err
	}
	bad := len(foreign) > 0
	for _, err := range foreign {
		complain(l.err, err)
	}
	for _, h := range chosen {
		if h.Err != nil {
			complain(l.err, h.Err)
			bad = true
		}
	}
	if bad {
		return errReported
	}
	return nil
}

// damagedCells returns the errors of the cells that a store could not list.
func damagedCells(err error) (all []*stores.DamagedError) {
	switch e := err.(type) {
	case *stores.DamagedError:
		return append(all, e)
	case interface{ Unwrap() error }:
		return damagedCells(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, damagedCells(err)...)
		}
	}
	return all
}

// mustExist returns an error if the store is a directory that does not exist.
func (l *leases) mustExist(ctx context.Context) error {
	path, err := l.place.missing(ctx, *l.layout)
	if err == nil && path != "" {
		err = missingError(path)
	}
	return err
}

func missingError(path string) error {
	return fmt.Errorf("no node number was ever claimed here: there is no directory %s", path)
}

func newLeaseRelease(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release NODE",
		Short: "Release a node number whose process is gone",
		Long:  leaseReleaseHelp,
		Example: `  tickflake lease release 7
  tickflake lease release 7 --store etcd://10.0.0.1:2379 --yes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	l := newLeases(c, cmd)
	cmd.MarkFlagsMutuallyExclusive("layout", "store") // a store has one layout
	yes := cmd.Flags().Bool("yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node, to, err := nodeRange(args[0])
		if err == nil && node != to {
			err = &usageError{fmt.Errorf("want one node number, got %q", args[0])}
		}
		if err != nil {
			return err
		}
		return l.release(cmd.Context(), node, *yes)
	}
	return cmd
}

func (l *leases) release(ctx context.Context, node int64, yes bool) error {
	if err := l.mustExist(ctx); err != nil {
		return err
	}
	var h lease.Holding
	err := l.with(ctx, func(ctx context.Context, store stores.Store) (err error) {
		h, err = lease.InspectNode(ctx, store, node)
		return err
	})
	switch {
	case err != nil:
		return err
	case h.Err != nil:
		return h.Err
	case h.State == lease.Released:
		_, err := fmt.Fprintf(l.out, "node number %d was released before\n", node)
		return err
	}
	if !yes {
		if err := l.confirm(ctx, h); err != nil {
			return err
		}
	}
	err = l.with(ctx, func(ctx context.Context, store stores.Store) error {
		return lease.ForceRelease(ctx, store, node)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.out, "node number %d is released; its next grant begins at %s\n", node, h.Limit.UTC().Format(untilFormat))
	return err
}

// confirm asks whether to release a node number.
func (l *leases) confirm(ctx context.Context, h lease.Holding) error {
	if f, ok := l.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return &usageError{errors.New("there is no terminal to confirm the release: give --yes")}
	}
	fmt.Fprintf(l.err, "node number %d is %s, by %s, until %s\nrelease it? [y/N] ", h.Node, h.State, ownerText(h), untilText(h, time.Now()))
	answer, err := bufio.NewReader(&input{ctx: ctx, r: l.in, before: l.out.Flush}).ReadString('\n')
	if err != nil && err != io.EOF {
		fmt.Fprintln(l.err)
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return fmt.Errorf("node number %d was not released", h.Node)
	}
	return nil
}

// maxNode is the largest node number of any layout.
const maxNode = 1<<22 - 1

// nodeRange reads a node number or a range such as 0-3.
func nodeRange(s string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	if from, err = wholeNumber(first); err == nil {
		to, err = wholeNumber(last)
	}
	if err != nil || from < 0 || to < from || to > maxNode {
		return 0, 0, &usageError{fmt.Errorf("want a node number from 0 to %d or a range such as 0-3, got %q", int64(maxNode), s)}
	}
	return from, to, nil
}
