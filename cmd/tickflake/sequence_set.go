package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const sequenceCreateHelp = `Create a sequence, if there is none of this name. A sequence that exists with
the same definition stays as it is; one with another definition is an error, which
shows both.

A sequence of a name that was deleted begins above every number that the deleted one
was granted, since processes may still issue some of these.

The mode, the start, the stride and the offset of a sequence never change. Sites
that have no store in common use one stride with an offset of its own for each:
with --stride 2, one site takes --offset 0 and counts 1, 3, 5, and the other takes
--offset 1 and counts 2, 4, 6.

With --period each year, month or day begins anew: 'tickflake sequence next orders'
takes a number of the present one by this machine's clock and time zone, and 'next
orders.2027', 'orders.2027-01' or 'orders.2027-01-31' one of any other.

A segmented sequence has steps: how many numbers a process is granted at a time. A
process that uses many numbers is granted more, within MIN to MAX. A crash loses at
most two segments of MAX numbers, and the largest batch.`

const sequenceSetHelp = `Change the next number, the maximum or the steps of a sequence, while processes
use it. A sequence is never set back: the next number is not lowered, and the
maximum not below a number that was granted.

The command prints the sequence before and after. With --next it asks first, since
the numbers between are never issued.

If the store lost writes, the sequence went back, and no numbers are granted. Then
give --next with a number above all that were used.`

const sequenceDeleteHelp = `Delete a sequence. The processes that use it issue the numbers that they were
granted, get no further segment, and fail. A sequence that is created with the same
name begins above all numbers that were ever granted, also those that were given
back. A sequence that went back is not deleted: raise its next number first, with
'tickflake sequence set'.

The command prints a file for a shell, which creates the sequence that continues it
in the store of the variable NEW. Run that for one store only; docs/move.md has all
steps. Deleting it once more prints the same.
`

// modes are the modes of a sequence, the default first.
var modes = []string{string(sequence.Segmented), string(sequence.Ordered)}

// periods are those that need no program to name them, and the default before them.
var periods = []string{"none", sequence.Yearly.String(), sequence.Monthly.String(), sequence.Daily.String()}

func newSequenceCreate(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a sequence, if there is none of this name",
		Long:  sequenceCreateHelp,
		Example: `  tickflake sequence create orders
  tickflake sequence create invoices --mode ordered --start 20270001 --max 20279999
  tickflake sequence create receipts --period yearly
  tickflake sequence create tickets --stride 2 --offset 1 --step 100-10000`,
		Args: oneName,
	}
	s := newSequences(c, cmd)
	s.makes = true
	cmd.Flags().SortFlags = false
	d := sequence.Definition{Start: 1}
	mode := command.ChoiceFlag(cmd, "mode", "create the sequence in `MODE`, see 'tickflake sequence --help'", modes...)
	command.Flag(cmd, "start", "begin with number `N`, 0 or more (default 1)", &d.Start, atLeast("0", wholeNumber))
	maxFlag(cmd, &d.Max, 0)
	var by, offset int64
	command.Flag(cmd, "stride", "use each `N`th number only, with --offset (default 1)", &by, atLeast("1", wholeNumber))
	command.Flag(cmd, "offset", "begin `N` numbers after the start, from 0 to the stride less 1, with --stride (default 0)", &offset, atLeast("0", wholeNumber))
	cmd.MarkFlagsRequiredTogether("stride", "offset") // each site has an offset of its own
	step := stepFlag(cmd)
	period := command.ChoiceFlag(cmd, "period", "begin anew each `PERIOD`", periods...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d.Mode, d.FromZero = sequence.Mode(*mode), d.Start == 0
		if by > 0 {
			d.Stride = sequence.Every(by, offset)
		}
		if *period != "none" {
			if err := d.Period.UnmarshalText([]byte(*period)); err != nil {
				return err
			}
		}
		d.MinStep, d.MaxStep = step.least, step.most
		if d.Mode == sequence.Ordered && d.MaxStep > 0 {
			return noSteps(d.MinStep, d.MaxStep)
		}
		name := args[0]
		info, err := ask(cmd.Context(), s.place, func(ctx context.Context, store stores.Store) (sequence.Info, error) {
			if err := sequence.Create(ctx, store, name, d); err != nil {
				return sequence.Info{}, err
			}
			return sequence.Inspect(ctx, store, name)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "sequence %q: %s\n", name, summary(info))
		return err
	}
	return cmd
}

// maxFlag adds --max. none is the value of no maximum.
func maxFlag(cmd *cobra.Command, value *int64, none int64) {
	command.Flag(cmd, "max", "issue numbers up to `N`; none is no maximum (default none)", value, func(s string) (int64, error) {
		if s == "none" {
			return none, nil
		}
		last, err := wholeNumber(s)
		switch {
		case err != nil:
		case last < 1: // 0 would be the default
			err = fmt.Errorf("want at least 1, got %d", last)
		case last == none:
			err = fmt.Errorf("%d is beyond the range of a sequence: want less, or none", last)
		}
		return last, err
	})
}

// steps are the least and the most numbers that a process reserves at a time.
type steps struct{ least, most int64 }

// stepFlag adds --step.
func stepFlag(cmd *cobra.Command) *steps {
	var value steps
	usage := fmt.Sprintf("grant a process `MIN-MAX` numbers at a time, a range or one number (default %d-%d)", sequence.DefaultMinStep, sequence.DefaultMaxStep)
	command.Flag(cmd, "step", usage, &value, parseSteps)
	return &value
}

// parseSteps reads a range of steps, or one number for both ends.
func parseSteps(s string) (steps, error) {
	least, most, ok := numberRange(s, 1, sequence.MaxStep)
	if !ok {
		return steps{}, fmt.Errorf("want a number from 1 to %d or a range such as %d-%d, got %q", int64(sequence.MaxStep), sequence.DefaultMinStep, sequence.DefaultMaxStep, s)
	}
	return steps{least, most}, nil
}

func noSteps(least, most int64) error {
	return cli.Usage(fmt.Errorf("--step %d-%d: an ordered sequence has no steps: leave it out", least, most))
}

func newSequenceSet(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the next number, the maximum or the steps of a sequence",
		Long:  sequenceSetHelp,
		Example: `  tickflake sequence set orders --next 500000
  tickflake sequence set orders --max 999999 --store etcd://10.0.0.1:2379
  tickflake sequence set orders --step 1000-1000000`,
		Args: oneName,
	}
	s := newSequences(c, cmd)
	var change sequence.Change
	command.Flag(cmd, "next", "grant number `N` next, or the next one above it that the stride allows", &change.Next, atLeast("1", wholeNumber))
	maxFlag(cmd, &change.Max, math.MaxInt64)
	cmd.Flags().Lookup("max").Usage = "issue numbers up to `N`; none is no maximum"
	step := stepFlag(cmd)
	cmd.Flags().Lookup("step").Usage = "grant a process `MIN-MAX` numbers at a time, a range or one number"
	cmd.MarkFlagsOneRequired("next", "max", "step")
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change.MinStep, change.MaxStep = step.least, step.most
		ctx, name := cmd.Context(), args[0]
		info, err := s.inspect(ctx, name)
		if err != nil {
			return err
		}
		if info.Definition.Mode == sequence.Ordered && change.MaxStep > 0 {
			return noSteps(change.MinStep, change.MaxStep)
		}
		next := uint64(info.Last + info.Definition.Stride.By()) // also if none is left
		question := fmt.Sprintf("sequence %q: %s\nset the next number to %d, so that those from %d to %d are never issued?",
			name, summary(info), change.Next, next, change.Next-1)
		asked := *yes || uint64(change.Next) <= next // a lower one is refused
		if err := s.Confirm(ctx, asked, "change", question, fmt.Errorf("sequence %q was not changed", name)); err != nil {
			return err
		}
		var before, after sequence.Info
		err = s.with(ctx, func(ctx context.Context, store stores.Store) (err error) {
			before, after, err = sequence.Set(ctx, store, name, change)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "sequence %q\nbefore  %s\nafter   %s\n", name, summary(before), summary(after))
		return err
	}
	return cmd
}

func newSequenceDelete(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a sequence",
		Long:  sequenceDeleteHelp,
		Example: `  tickflake sequence delete orders
  tickflake sequence delete orders --store etcd://10.0.0.1:2379 --yes > create.sh`,
		Args: oneName,
	}
	s := newSequences(c, cmd)
	yes := cmd.Flags().Bool("yes", false, "do not ask, which needs a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, name := cmd.Context(), args[0]
		info, err := s.inspect(ctx, name)
		before := errors.Is(err, sequence.ErrDeleted)
		if err != nil && !before {
			return err
		}
		question := fmt.Sprintf("sequence %q: %s\n%s\ndelete it?", name, summary(info), grantedText(info))
		asked := *yes || before || info.WentBack // that one is refused
		if err := s.Confirm(ctx, asked, "deletion", question, fmt.Errorf("sequence %q was not deleted", name)); err != nil {
			return err
		}
		last, err := ask(ctx, s.place, func(ctx context.Context, store stores.Store) (sequence.Info, error) {
			return sequence.Delete(ctx, store, name)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "# sequence %q is deleted; %s\n%s\n", name, grantedText(last), continued(last))
		return err
	}
	return cmd
}

// grantedText names the numbers that were granted, and the one above which a new sequence begins.
func grantedText(info sequence.Info) string {
	if info.Definition.Period != (sequence.Period{}) {
		return "the sequences of its periods stay, and no other is made"
	}
	text := "no number was granted"
	if granted(info) {
		text = fmt.Sprintf("the numbers from %d to %d were granted and not given back", info.Definition.First(), info.Last)
	}
	if info.Granted >= info.Definition.First() {
		text += fmt.Sprintf("; in this store a new sequence of this name begins above %d, the highest that was ever granted, also if it was given back", info.Granted)
	}
	return text
}
