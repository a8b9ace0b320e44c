package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

const leaseReserveHelp = `Reserve node numbers for systems that do not use this store, such as another ID
generator during a migration: no process claims them before the date.

NODES is a number, or a range such as 0-3. DATE is 2026-12-31 (to its end, in UTC)
or 2026-12-31T12:00:00Z. A reservation can be lengthened and not shortened. Numbers
that are held are refused. The layout is the one of the store, or in an empty
store --layout.`

func newLeaseReserve(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reserve NODES --until DATE",
		Short: "Reserve node numbers for systems that do not use the store",
		Long:  leaseReserveHelp,
		Example: `  tickflake lease reserve 0-3 --until 2027-06-30
  tickflake lease reserve 7 --until 2027-06-30T12:00:00Z --store etcd://10.0.0.1:2379`,
		Args:              oneArg(1, "arguments", "one: a node number, or a range such as 0-3"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	l := newLeases(c, cmd)
	cmd.Flags().Lookup("layout").Usage = "`NAME|SPEC` of the layout of an empty store (default \"" + snowflake.Default().Name + "\")"
	var until time.Time
	cmd.Flags().Func("until", "`DATE` at which the reservation ends", func(s string) (err error) {
		until, err = parseUntil(s)
		return err
	})
	if err := cmd.MarkFlagRequired("until"); err != nil {
		panic(err) // no such flag
	}
	command.CompleteFlag(cmd, "until")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, err := nodeRange(args[0])
		if err != nil {
			return err
		}
		return l.reserve(cmd.Context(), from, to, until, cmd.Flags().Changed("layout"))
	}
	return cmd
}

func (l *leases) reserve(ctx context.Context, from, to int64, until time.Time, layoutGiven bool) error {
	var reserved []lease.Holding
	err := l.with(ctx, func(ctx context.Context, store stores.Store) error {
		err := lease.Reserve(ctx, store, from, to, until, lease.WithLayout(*l.layout), lease.WithTimeout(l.timeout))
		var other *lease.LayoutMismatchError
		if errors.As(err, &other) && !layoutGiven {
			err = lease.Reserve(ctx, store, from, to, until, lease.WithLayout(other.Theirs), lease.WithTimeout(l.timeout))
		}
		for node := from; err == nil && node <= to; node++ {
			var h lease.Holding
			h, err = lease.Inspect(ctx, store, node)
			reserved = append(reserved, h)
		}
		return err
	})
	if err != nil {
		var option *stores.OptionError
		if errors.As(err, &option) && option.Option == "Reserve" {
			return cli.Usage(option.Err)
		}
		return err
	}
	// A limit that was later stays as it was.
	kept := slices.DeleteFunc(slices.Clone(reserved), func(h lease.Holding) bool { return h.Limit.Sub(until) < h.Layout.Tick })
	if len(kept) < len(reserved) {
		nodes := fmt.Sprintf("node number %d is", from)
		if to > from {
			nodes = fmt.Sprintf("node numbers %d to %d are", from, to)
		}
		fmt.Fprintf(l.Out, "%s reserved until %s\n", nodes, until.Format(untilFormat))
	}
	for _, h := range kept {
		fmt.Fprintf(l.Out, "node number %d is reserved until %s: that was its limit before, and no limit is lowered\n", h.Node, h.Limit.UTC().Format(untilFormat))
	}
	return nil // a failed write shows when the output is flushed
}

// parseUntil reads an instant, or a date, which stands for its end in UTC.
func parseUntil(s string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return at, fmt.Errorf("want a date such as 2027-06-30 or 2027-06-30T12:00:00Z, got %q", s)
	}
	return at.UTC(), nil
}
