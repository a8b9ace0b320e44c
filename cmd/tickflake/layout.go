package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/snowflake"
)

const layoutHelp = `A layout says what the bits of an ID mean: the epoch and the unit of its time
(the tick), the widths of time, node and sequence, and their order.`

const layoutListHelp = `List the layouts that have a name, with the widths of their fields from the high
bits to the low ones. A layout whose time is over still decodes IDs.`

const layoutShowHelp = `Show a layout: its bits, its capacity, and its spec. A layout is given by one of

  NAME                          a name of 'tickflake layout list'
  NAME,epoch=2026-01-01         the same with another epoch, tick or both
  41/10/12                      widths of time, node and sequence
  41/10/12,tick=10ms            the same with an epoch, a tick or both
  time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z

The last form lists the fields from the high bits to the low ones. Other names
than time and sequence are parts of the node, which also may come last. The tick
is 1ms and the epoch 2025-01-01 unless given; an epoch is an instant, a date, or
milliseconds since 1970.`

const layoutPlanHelp = `Propose a layout for a number of nodes, a rate and a lifetime.

Node and sequence get the bits that they need, and the time field all the others.
The output states the demand that the layout is for. If the demand does not fit, the
error says what would fit, and the exit code is 1.`

func newLayout(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "layout",
		Short: "List, show and plan layouts: what the bits of an ID mean",
		Long:  layoutHelp,
	}
	cmd.AddCommand(newLayoutList(c), newLayoutShow(c), newLayoutPlan(c), newLayoutIDs(c), newLayoutSQL(c))
	return cmd
}

func newLayoutList(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the layouts that have a name",
		Long:  layoutListHelp,
		Example: `  tickflake layout list
  tickflake layout list --format json | jq -r 'select(.over | not).name'`,
		Args: cobra.NoArgs,
	}
	format := formatFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		var all []layoutInfo
		for _, l := range snowflake.Presets() {
			all = append(all, infoOf(l))
		}
		return printLayouts(c.Out, *format, all...)
	}
	return cmd
}

func newLayoutShow(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME|SPEC",
		Short: "Show a layout: its bits, capacity and spec",
		Long:  layoutShowHelp,
		Example: `  tickflake layout show twitter
  tickflake layout show 41/10/12,epoch=2026-01-01
  tickflake layout show time=39,sequence=8,machine=16,tick=10ms --format json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(layoutCompletions(), cobra.ShellCompDirectiveNoFileComp),
	}
	format := formatFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := snowflake.ParseLayout(args[0])
		if err != nil {
			return cli.Usage(err)
		}
		if *format == command.FormatJSON {
			return printLayouts(c.Out, *format, infoOf(l))
		}
		return infoOf(l).describe(c.Out)
	}
	return cmd
}

func newLayoutPlan(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan --nodes N",
		Short: "Propose a layout for a demand",
		Long:  layoutPlanHelp,
		Example: `  tickflake layout plan --nodes 3000
  tickflake layout plan --nodes 100 --rate 50000 --years 30
  tickflake layout plan --nodes 16 --rate 500 --years 50 --epoch 2026-01-01 --bits 53`,
		Args: cobra.NoArgs,
	}
	// What a service needs at most, in most cases: a burst of 10,000 IDs per second in each process, for a working life.
	demand := snowflake.Demand{RatePerNode: 10_000, Years: 50}
	command.Flag(cmd, "nodes", "plan for `N` generators that issue IDs at once", &demand.Nodes, wholeNumber)
	number := func(name, usage string, value *float64) {
		command.Flag(cmd, name, fmt.Sprintf("%s (default %g)", usage, *value), value, func(s string) (float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				err = fmt.Errorf("want a number, got %q", s)
			}
			return f, err
		})
	}
	number("rate", "plan for `R` IDs per second of one node, at its peak", &demand.RatePerNode)
	number("years", "let the layout last `Y` years from its epoch, not from now", &demand.Years)
	command.Flag(cmd, "bits", "use at most `N` bits, 53 if an ID must survive as a JavaScript number (default 63)", &demand.Bits, upTo(63)) // Plan takes 0 for the default
	epoch := snowflake.Default().Epoch.Format(time.DateOnly)
	command.Flag(cmd, "epoch", "count time from `INSTANT`, such as 2026-01-01 (default "+epoch+")", &demand.Epoch, snowflake.ParseEpoch)
	cmd.Flags().SortFlags = false
	format := formatFlag(cmd)
	_ = cmd.MarkFlagRequired("nodes") // it was just added
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := snowflake.Plan(demand)
		if errors.Is(err, snowflake.ErrDemand) {
			return cli.Usage(err)
		}
		if err != nil {
			return err
		}
		info := infoOf(l)
		if *format == command.FormatJSON {
			info.Demand = &demandJSON{demand.Nodes, demand.RatePerNode, demand.Years}
			return printLayouts(c.Out, *format, info)
		}
		return info.describe(c.Out, []string{"demand", fmt.Sprintf("%s nodes, %s IDs per second per node, %s years from the epoch",
			command.Number(demand.Nodes), command.Number(demand.RatePerNode), command.Number(demand.Years))})
	}
	return cmd
}

const layoutIDsHelp = `Print the smallest and the largest ID of the time from --from up to, but not
including, --to: for a query or a partition by time. A tick that only begins before
--from, or ends after --to, is not left out. TIME is an instant such as
2019-03-04T10:20:30Z.`

func newLayoutIDs(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ids --from TIME --to TIME",
		Short:   "Print the smallest and largest ID of a time",
		Long:    layoutIDsHelp,
		Example: `  tickflake layout ids --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z`,
		Args:    cobra.NoArgs,
	}
	layout, format := layoutFlag(cmd), formatFlag(cmd)
	var from, to time.Time
	command.Flag(cmd, "from", "begin at `TIME`", &from, parseInstant)
	command.Flag(cmd, "to", "end at `TIME`", &to, parseInstant)
	_, _ = cmd.MarkFlagRequired("from"), cmd.MarkFlagRequired("to") // they were just added
	cmd.RunE = func(*cobra.Command, []string) error {
		low, high, err := layout.Between(from, to)
		if err != nil {
			return cli.Usage(err)
		}
		if *format == command.FormatJSON {
			return json.NewEncoder(c.Out).Encode(map[string]snowflake.ID{"smallest": low, "largest": high})
		}
		_, err = fmt.Fprintf(c.Out, "smallest  %d\nlargest   %d\n", low, high)
		return err
	}
	return cmd
}
