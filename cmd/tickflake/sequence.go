package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const sequenceHelp = `Create, use, show, change and delete sequences: counted numbers, such as those of
orders and invoices.

A store keeps the state of a sequence, and any number of processes take numbers of
it. No number is issued twice. The numbers of a sequence are in one of two modes:

  segmented  a process is granted numbers ahead, and hands them out from memory
  ordered    a process writes to the store for each number, and the numbers are in
             the order of real time across all processes

The state of each sequence is one of

  ok         it has numbers left
  used up    the maximum was reached: 'tickflake sequence set NAME --max N' raises it
  went back  the store lost writes, and no numbers are granted: find the highest
             number that was used; 'tickflake sequence set NAME --next N' with a
             higher one ends that
  damaged    its cell cannot be read: no process uses or overwrites it

` + sequenceStoresHelp

const sequenceListHelp = `List the sequences of a store, or the one of a name. LAST is the highest number that
was granted and not given back, and LEFT how many there are up to the maximum: - is
none. A sequence by period has no numbers: those of its periods have them.

With --format json each is an object on a line of its own with the fields name,
state, definition, next (null if none is left), last (null if no number was
granted), left (null if it is by period), writes and error.

The exit code is 1 if a cell is damaged. Each is reported on standard error, too.`

// sequences is common to the sequence commands.
type sequences struct {
	*command.Console
	*place
}

func newSequence(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sequence",
		Short: "Create and use sequences of counted numbers",
		Long:  sequenceHelp,
	}
	cmd.AddCommand(newSequenceCreate(c), newSequenceNext(c), newSequenceList(c), newSequenceSet(c), newSequenceDelete(c))
	return cmd
}

// newSequences adds the flags of the sequence commands.
func newSequences(c *command.Console, cmd *cobra.Command) *sequences {
	return &sequences{c, placeFlags(cmd, keptSequences, func() string { return sequenceDirectory })}
}

// oneName checks that the arguments are the name of a sequence.
func oneName(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return err
	}
	return sequence.ValidateName(args[0])
}

func newSequenceList(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [NAME]",
		Short: "List the sequences of a store",
		Long:  sequenceListHelp,
		Example: `  tickflake sequence list
  tickflake sequence list --store etcd://10.0.0.1:2379
  tickflake sequence list orders -o json | jq .next
  tickflake sequence list -o json | jq -r 'select((.left // 1000) < 1000).name'`,
		Args: cobra.MaximumNArgs(1),
	}
	s := newSequences(c, cmd)
	format := command.FormatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return s.list(cmd.Context(), *format)
		}
		info, err := s.inspect(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return printSequences(s.Out, []sequenceState{stateOf(info)}, *format)
	}
	return cmd
}

func (s *sequences) list(ctx context.Context, format string) error {
	all, damaged, err := list(ctx, s.Console, s.place, sequence.List)
	if err != nil {
		return err
	}
	var states []sequenceState
	for _, info := range all {
		states = append(states, stateOf(info))
	}
	var bad []error
	for _, c := range damaged {
		if name, ok := strings.CutPrefix(c.Key, "seq/"); ok && sequence.ValidateName(name) == nil {
			states = append(states, sequenceState{Name: name, State: "damaged", Error: c.Error()})
		}
		bad = append(bad, c)
	}
	slices.SortFunc(states, func(a, b sequenceState) int { return cmp.Compare(a.Name, b.Name) })
	return cmp.Or(printSequences(s.Out, states, format), s.Report(bad...))
}

// inspect returns the state of a sequence.
func (s *sequences) inspect(ctx context.Context, name string) (sequence.Info, error) {
	return ask(ctx, s.place, func(ctx context.Context, store stores.Store) (sequence.Info, error) {
		return sequence.Inspect(ctx, store, name)
	})
}
