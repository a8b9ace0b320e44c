package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/sequence"
)

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
