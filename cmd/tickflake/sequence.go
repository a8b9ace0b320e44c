package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

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

// sequenceState is the JSON of a sequence. A number that there is not, and
// all that a damaged cell does not tell, is null.
type sequenceState struct {
	Name       string               `json:"name"`
	State      string               `json:"state"`
	Definition *sequence.Definition `json:"definition"`
	Next       *int64               `json:"next"`
	Last       *int64               `json:"last"`
	Left       *int64               `json:"left"`
	Writes     *uint64              `json:"writes"`
	Error      string               `json:"error"`

	info sequence.Info
}

func stateOf(info sequence.Info) sequenceState {
	s := sequenceState{Name: info.Name, State: stateText(info), Definition: &info.Definition, Writes: &info.Writes, info: info}
	if info.Definition.Period == (sequence.Period{}) {
		s.Left = &info.Left
	}
	if info.Left > 0 {
		s.Next = &info.Next
	}
	if granted(info) {
		s.Last = &info.Last
	}
	return s
}

// granted reports whether a number was granted.
func granted(info sequence.Info) bool { return info.Last >= info.Definition.First() }

func stateText(info sequence.Info) string {
	switch {
	case info.WentBack:
		return "went back"
	case info.Left == 0 && info.Definition.Period == (sequence.Period{}):
		return "used up"
	}
	return "ok"
}

// printSequences writes a table, or one JSON object per line.
func printSequences(w io.Writer, all []sequenceState, format string) error {
	return command.Print(w, format, all, []string{"NAME", "STATE", "NEXT", "LAST", "LEFT", "DEFINITION"}, func(s sequenceState) []string {
		if s.Error != "" {
			return []string{s.Name, s.State, "-", "-", "-", "-"}
		}
		left := "-"
		if next, _ := s.info.Continued(); s.Left != nil && next.Max != 0 {
			left = fmt.Sprint(s.info.Left)
		}
		return []string{s.Name, s.State, nextText(s.info), choose(granted(s.info), fmt.Sprint(s.info.Last), "-"), left, s.info.Definition.String()}
	})
}

// continued says how a deleted sequence is continued, in lines for a shell.
func continued(last sequence.Info) string {
	d, ok := last.Continued()
	if !ok {
		return "# No number is left to continue with."
	}
	begins := fmt.Sprintf("it begins at %d", last.Next)
	if d.Period != (sequence.Period{}) {
		begins = "each period begins anew, but for those that you delete here and create there first"
		if !slices.Contains(periods, d.Period.String()) {
			return "# To continue it in another store, have its program create it there: " + d.String()
		}
	}
	return "# Create it in one other store, before a process asks that for a number: " + begins + ".\n# NEW is the URL of that store.\n" +
		createCommand(last.Name, d) + ` --store "$NEW"`
}

// createCommand is the command that creates a sequence with a definition of [sequence.Info.Continued].
func createCommand(name string, d sequence.Definition) string {
	text := fmt.Sprintf("%s sequence create %s --mode %s --start %d", program(), name, d.Mode, d.Start)
	if d.Max != 0 {
		text += fmt.Sprintf(" --max %d", d.Max)
	}
	if d.Stride.By() > 1 {
		text += fmt.Sprintf(" --stride %d --offset %d", d.Stride.By(), d.Stride.Offset())
	}
	if d.Mode == sequence.Segmented {
		text += fmt.Sprintf(" --step %d-%d", d.MinStep, d.MaxStep)
	}
	if d.Period != (sequence.Period{}) {
		text += fmt.Sprintf(" --period %s", d.Period)
	}
	return text
}

func nextText(info sequence.Info) string { return choose(info.Left == 0, "-", fmt.Sprint(info.Next)) }

// summary returns a sequence in one line, for messages.
func summary(info sequence.Info) string {
	next := "the next number is " + nextText(info)
	switch {
	case info.WentBack:
		next += ", but the store went back"
	case info.Definition.Period != (sequence.Period{}):
		next = fmt.Sprintf("each period begins with %d", info.Definition.First())
	case info.Left == 0:
		next = "no number is left"
	}
	return fmt.Sprintf("%s; %s", info.Definition, next)
}

const sequenceNextHelp = `Take numbers of a sequence and print one per line, in ascending order.

No two runs get the same number. With --count N other processes may get numbers
between those of this run; with --row they are N in a row.

In segmented mode the run is granted numbers ahead. At its end, also after a signal,
it gives back those that it has not printed. If another process was granted numbers
since, or the run is killed, they are never issued. In ordered mode the run writes
to the store for each number. With --row all are taken at once, in both modes, and
those that are not printed are never issued.

A sequence by period gives numbers of the present period, by this machine's clock and
time zone. NAME.2027 is one of its periods, and is made if it was not made before.

Memory use does not grow with --count.`

func newSequenceNext(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next NAME",
		Short: "Take numbers of a sequence, one per line",
		Long:  sequenceNextHelp,
		Example: `  tickflake sequence next orders
  tickflake sequence next orders --count 1000000 > numbers.txt
  tickflake sequence next orders --count 12 --row
  tickflake sequence next orders --store 'etcd://10.0.0.1:2379?namespace=shop'`,
		Args: oneName,
	}
	s := newSequences(c, cmd)
	count := int64(1)
	command.Flag(cmd, "count", "print `N` numbers, at least 1 (default 1)", &count, atLeast("1", wholeNumber))
	row := cmd.Flags().Bool("row", false, "take numbers in a row, each one stride above the one before")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return s.next(cmd.Context(), args[0], count, *row) }
	return cmd
}

func (s *sequences) next(ctx context.Context, name string, count int64, row bool) (err error) {
	bounded, cancel := s.within(ctx)
	defer cancel()
	store, err := s.open(bounded)
	if err != nil {
		return s.ended(ctx, bounded, err)
	}
	defer store.Close()
	// Each line of the log would repeat the error of a call.
	options := []sequence.Option{sequence.WithTimeout(s.timeout), sequence.WithLogger(slog.New(slog.DiscardHandler))}
	if row || count == 1 { // there is no next call for which to reserve numbers
		options = append(options, sequence.WithOutage(0))
	}
	numbers, err := sequence.Open(bounded, store, name, options...)
	if errors.Is(err, sequence.ErrByPeriod) && !errors.Is(err, sequence.ErrNotFound) {
		var info sequence.Info
		var period string
		if info, err = sequence.Inspect(bounded, store, name); err == nil {
			period, err = info.Definition.Period.Name(time.Now())
		}
		if err == nil {
			numbers, err = sequence.Open(bounded, store, name+"."+period, options...)
		}
	}
	if err != nil {
		return s.ended(ctx, bounded, err)
	}
	defer func() { s.giveBack(numbers, err) }()

	take := numbers.Next
	if row {
		first, err := numbers.NextN(ctx, count)
		if err != nil {
			return s.stopped(ctx, flagError(err))
		}
		by := numbers.Definition().Stride.By()
		take = func(context.Context) (int64, error) {
			n := first
			first += by
			return n, nil
		}
	}
	return printLines(ctx, s.Out, "numbers", count, 1, func(ctx context.Context, one []int64) (taken int, err error) {
		if one[0], err = take(ctx); err != nil {
			return 0, s.stopped(ctx, err)
		}
		return 1, nil
	}, func(n int64) (string, error) { return strconv.FormatInt(n, 10), nil })
}

// stopped returns the error of a call for numbers: the cause of the end of ctx, if that has
// ended, or that --timeout is over.
func (s *sequences) stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, sequence.ErrTimeout) {
		return err
	}
	if !errors.Is(err, sequence.ErrStore) { // it has said nothing at all
		err = fmt.Errorf("%s: %w", s.name(), err)
	}
	return &lateError{s.timeout, err}
}

// giveBack closes the sequence at the end of a run, which had an error or not. An error of the
// store is reported, unless it has ended the run. It is no error of the command: the numbers are
// not issued twice even so.
func (s *sequences) giveBack(numbers *sequence.Sequence, ended error) {
	// A signal has ended the context of the command and must not prevent this.
	ctx, cancel := s.within(context.Background())
	defer cancel()
	err := numbers.CloseContext(ctx)
	if err != nil && !errors.Is(ended, sequence.ErrStore) && !errors.Is(ended, sequence.ErrTimeout) {
		s.Complain(err)
	}
}
