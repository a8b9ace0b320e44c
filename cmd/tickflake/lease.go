package main

import (
	"bufio"
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

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

const leaseHelp = `Show who holds which node number, and give back those of processes that are gone.

A node number is

  held       by a process. In a directory, it is one that is alive; elsewhere, one
             that may be so until one window after UNTIL
  released   given back, free for the next process
  abandoned  by a process that ended without that, or a machine that is gone; free
  damaged    unreadable: nobody can claim it, and nothing overwrites it

UNTIL is the end of the time that was granted to the last holder. The next one begins
there, whatever its clock says. CLOCK is how far the holder's clock is ahead of ours,
by what it was granted: it can only be told to a sixth of the holder's window, and
not at all (-) once UNTIL is past.

` + storesHelp

const leaseListHelp = `List the node numbers that were ever claimed, and who holds them.

With --format json each gives one object on a line of its own, with the fields node,
state, owner, until, remaining (of the time granted), ahead (the holder's clock, null
unless it is held), window, layout and error; durations are in nanoseconds.

The exit code is 1 if a cell is damaged. It is reported on standard error, and the
others are listed.`

const leaseReleaseHelp = `Give a node number back in the place of its holder, which is gone.

That is hardly ever needed: a number is free one window after UNTIL, and in a
directory as soon as its process has ended. It is safe even if the holder is alive
after all: the next one begins where the time granted to the holder ends, and the
holder goes on to another number when it finds out. In a directory, the number of a
process that is alive is not released.

It asks before it does anything, unless --yes is given, as it must be where nobody
can answer.`

// leases is what the lease commands have in common.
type leases struct {
	*console
	place  *place
	layout *snowflake.Layout
}

func newLease(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show who holds which node number, and release them",
		Long:  leaseHelp,
		Example: `  tickflake lease list
  tickflake lease show 7 --store postgres://ids@db.example.com/ids --namespace orders
  tickflake lease release 7 --store etcd://10.0.0.1:2379`,
	}
	cmd.AddCommand(newLeaseList(c), newLeaseShow(c), newLeaseRelease(c))
	return cmd
}

// flags adds those that all lease commands have.
func (l *leases) flags(cmd *cobra.Command) {
	l.place = placeFlags(cmd)
	l.layout = layoutFlag(cmd)
	cmd.Flags().Lookup("layout").Usage = "`NAME|SPEC` of the layout whose per-user state directory to look at (default \"" + snowflake.Default().Name + "\")"
}

func (l *leases) check(cmd *cobra.Command) error {
	if err := l.place.check(); err != nil {
		return err
	}
	if cmd.Flags().Changed("layout") && !l.place.isDefault() {
		return &usageError{errors.New("--layout does not go with a store or --state: it chooses among the per-user state directories, and a store knows its layout")}
	}
	return nil
}

// with opens the store for f, which --timeout bounds.
func (l *leases) with(ctx context.Context, f func(context.Context, lease.Store) error) error {
	bounded, cancel := l.place.within(ctx)
	defer cancel()
	store, closeStore, err := l.place.open(bounded, *l.layout, false)
	if err == nil {
		err = f(bounded, store)
		_ = closeStore() // it was only read, or written to the end
	}
	switch cause := context.Cause(bounded); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx) // a signal
	case cause != nil && !errors.Is(err, cause):
		return dialing.explain(l.place.scheme, fmt.Errorf("%w: %w", cause, err))
	}
	return dialing.explain(l.place.scheme, err)
}

func newLeaseList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who holds which node number",
		Long:  leaseListHelp,
		Example: `  tickflake lease list
  tickflake lease list --store etcd://10.0.0.1:2379 --namespace orders
  tickflake lease list --format json | jq -r 'select(.state == "held").owner'`,
		Args: noArgs,
	}
	l := &leases{console: c}
	l.flags(cmd)
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := l.check(cmd); err != nil {
			return err
		}
		return l.list(cmd.Context(), *format)
	}
	return cmd
}

func (l *leases) list(ctx context.Context, format string) error {
	var all []lease.Holding
	var problems []error
	err := l.with(ctx, func(ctx context.Context, store lease.Store) (err error) {
		all, err = lease.Inspect(ctx, store)
		var files []lease.Holding
		files, problems, err = damagedFiles(err)
		all = append(all, files...)
		return err
	})
	var missing *missingError
	if errors.As(err, &missing) && missing.Default {
		err = nil // so there are none
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b lease.Holding) int { return int(a.Node - b.Node) })
	if err := writeHoldings(l.out, all, format, time.Now()); err != nil {
		return err
	}
	if err := l.out.Flush(); err != nil { // what is wrong comes after it
		return err
	}
	for _, h := range all {
		if h.Err != nil {
			problems = append(problems, h.Err)
		}
	}
	for _, problem := range problems {
		complain(l.err, problem)
	}
	if len(problems) > 0 {
		return errReported
	}
	return nil
}

// damagedFiles takes the error of a directory's list apart: into the cells that are
// damaged, into the problems of single files, and into what else there is.
func damagedFiles(err error) (cells []lease.Holding, problems []error, rest error) {
	var several interface{ Unwrap() []error }
	var damaged *directory.CorruptError
	var unread *directory.FileError
	switch {
	case errors.As(err, &several): // the innermost that joins files comes first
		for _, one := range several.Unwrap() {
			c, p, r := damagedFiles(one)
			cells, problems, rest = append(cells, c...), append(problems, p...), errors.Join(rest, r)
		}
		if rest != nil {
			return nil, nil, err
		}
	case errors.As(err, &damaged):
		cells = append(cells, lease.Holding{Node: damaged.Node, State: lease.Damaged, Err: damaged})
	case errors.As(err, &unread):
		problems = append(problems, unread)
	default:
		rest = err
	}
	return cells, problems, rest
}

func newLeaseShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NODE",
		Short: "Show who holds a node number",
		Long:  "Show who holds a node number, or held it last.",
		Example: `  tickflake lease show 7
  tickflake lease show 7 --store nats://10.0.0.1:4222 --format json`,
		Args:              oneNode,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	l := &leases{console: c}
	l.flags(cmd)
	format := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := l.check(cmd); err != nil {
			return err
		}
		h, err := l.inspect(cmd.Context(), nodeOf(args))
		if err != nil {
			return err
		}
		if err := writeHolding(l.out, h, *format, time.Now()); err != nil || h.Err == nil {
			return err
		}
		return h.Err
	}
	return cmd
}

func (l *leases) inspect(ctx context.Context, node int64) (h lease.Holding, err error) {
	err = l.with(ctx, func(ctx context.Context, store lease.Store) (err error) {
		h, err = lease.InspectNode(ctx, store, node)
		return err
	})
	return h, err
}

func newLeaseRelease(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release NODE",
		Short: "Give a node number back in the place of a process that is gone",
		Long:  leaseReleaseHelp,
		Example: `  tickflake lease release 7
  tickflake lease release 7 --store etcd://10.0.0.1:2379 --yes`,
		Args:              oneNode,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	l := &leases{console: c}
	l.flags(cmd)
	yes := cmd.Flags().Bool("yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := l.check(cmd); err != nil {
			return err
		}
		return l.release(cmd.Context(), nodeOf(args), *yes)
	}
	return cmd
}

func (l *leases) release(ctx context.Context, node int64, yes bool) error {
	h, err := l.inspect(ctx, node)
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
	err = l.with(ctx, func(ctx context.Context, store lease.Store) error {
		return lease.ForceRelease(ctx, store, node)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.out, "node number %d is released; its next holder begins at %s\n", node, h.Limit.Format(untilFormat))
	return err
}

// confirm asks whether to release a node number.
func (l *leases) confirm(ctx context.Context, h lease.Holding) error {
	if f, ok := l.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return &usageError{errors.New("nobody can be asked here whether to release it: give --yes to do so")}
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

// oneNode checks that the arguments are one node number.
func oneNode(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d node numbers given, want one", len(args))
	}
	n, err := wholeNumber(args[0])
	if err == nil && (n < 0 || n > maxNode) {
		err = fmt.Errorf("want 0 to %d, got %d", int64(maxNode), n)
	}
	return err
}

// maxNode is the largest node number of any layout.
const maxNode = 1<<22 - 1

// nodeOf returns the node number that oneNode has checked.
func nodeOf(args []string) int64 {
	n, _ := wholeNumber(args[0])
	return n
}
