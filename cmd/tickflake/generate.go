package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

const generateHelp = `Issue IDs and print one per line, in ascending order.

No two runs issue the same ID: not at the same time, not one after the other, not
after a crash, and not if the clock is set back between them. Each run claims a
node number in a store, and releases it at its end. The number of a run that was
killed is free at once in a directory, and one window after its grant has ended in a
store that hosts share.

With --node the run claims that number and waits for it up to --timeout. In a
directory it fails while another run holds the number. In a store that hosts share
it takes the number over, and the other run ends when its grant has ended.

` + nodeStoresHelp + `

Memory use does not grow with --count.

` + generateAtHelp

const generateExamples = `  tickflake generate
  tickflake generate --count 100000000 > ids.txt
  tickflake generate --count 5 --layout sonyflake --format base58
  tickflake generate --layout 41/10/12,epoch=2026-01-01 --format json
  tickflake generate --store 'etcd://10.0.0.1:2379?namespace=orders' --node 7
  tickflake generate --count 100000 --strategy reject
  tickflake generate --at 2019-03-04T10:20:30.456Z
  cut -d, -f2 rows.csv | tickflake generate --at - --times unix > ids.txt`

const (
	maxBatch = 4096 // IDs per call
	// flushEvery is the longest time that a line stays in the buffer while others follow.
	flushEvery = 100 * time.Millisecond
)

func newGenerate(c *command.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Issue IDs, one per line",
		Long:    generateHelp,
		Example: generateExamples,
		Args:    cobra.NoArgs,
	}
	count := int64(1)
	command.Flag(cmd, "count", "issue `N` IDs, at least 1 (default 1)", &count, atLeast("1", wholeNumber))
	g := newIssuing(cmd)
	old := oldRowsFlags(cmd)
	format := command.ChoiceFlag(cmd, "format", "print IDs in the `FORM`, json being what 'tickflake decode' prints", append(slices.Clone(formNames), command.FormatJSON)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		line := func(id snowflake.ID) (string, error) {
			decoded, err := g.layout.Decode(id)
			if err != nil {
				return "", err
			}
			object, err := decoded.MarshalJSON()
			return string(object), err
		}
		if form, ok := forms[*format]; ok {
			line = func(id snowflake.ID) (string, error) { return form.format(id), nil }
		}
		if cmd.Flags().Changed("at") { // an empty one is no instant
			return old.run(ctx, c, g.claiming, cmd.Flags().Changed("layout") || g.url == "", line)
		}
		if cmd.Flags().Changed("times") || cmd.Flags().Changed("unit") {
			return cli.Usage(errors.New("--times and --unit need --at"))
		}
		gen, err := g.claim(ctx, logger(c.Err))
		if err != nil {
			return err
		}
		defer gen.Close()
		// A batch of at most one tick's IDs waits for at most one tick, so the strategy
		// decides about it as about a single ID.
		batch := min(maxBatch, g.layout.Capacity().IDsPerTick)
		return printLines(ctx, c.Out, "IDs", count, batch, gen.NextNContext, line)
	}
	return cmd
}

// printLines takes count things, up to batch at a time, and writes a line for each.
func printLines[T any](ctx context.Context, out *bufio.Writer, things string, count, batch int64, take func(context.Context, []T) (int, error), line func(T) (string, error)) error {
	some := make([]T, batch)
	var flushed time.Time
	for written := int64(0); written < count; {
		err, n := context.Cause(ctx), 0 // a number of the window does not ask ctx
		if err == nil {
			n, err = take(ctx, some[:min(batch, count-written)])
		}
		for _, one := range some[:n] {
			text, err := line(one)
			if err != nil {
				return err
			}
			out.WriteString(text)
			// A bufio.Writer that failed once fails for good.
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		written += int64(n)
		if err != nil {
			return cutShort(err, out, things, written, count)
		}
		if now := time.Now(); now.Sub(flushed) >= flushEvery {
			if err := out.Flush(); err != nil {
				return err
			}
			flushed = now
		}
	}
	return out.Flush() // before a store is told, which may take a moment
}

// cutShort returns the error of a run that ended early because of err, with the number of
// lines that were written before: IDs or numbers.
func cutShort(err error, out *bufio.Writer, things string, written, count int64) error {
	if signal, ok := errors.AsType[cli.Interruption](err); ok {
		err = signal
	}
	// After a failed flush, the number of lines that were written is unknown.
	switch flushErr := out.Flush(); {
	case errors.Is(flushErr, command.ErrReaderGone):
		return err
	case flushErr != nil:
		return fmt.Errorf("%w; %w", err, flushErr)
	}
	return fmt.Errorf("%w; %d of %d %s written", err, written, count, things)
}

const generateAtHelp = `With --at it issues IDs for old rows instead, each of its own time, with the node
numbers that were given to the past ('tickflake lease past'). They meet no other ID,
old or new. --at - reads instants from standard input, one per line, and prints an
ID for each, in their order, which need not be that of time. --times says what an
instant is: rfc3339 such as 2019-03-04T10:20:30Z, or unix or unix-ms, seconds or
milliseconds since 1970. Rows that know only the second need --unit 1s, which unix
has by default: their IDs are spread over it. A line that is no instant, or one
before the epoch or after now, ends the run with its number and the exit code 2.`

// oldRows are the flags of generate for old rows.
type oldRows struct {
	at, times *string
	unit      time.Duration
}

func oldRowsFlags(cmd *cobra.Command) *oldRows {
	o := &oldRows{at: cmd.Flags().String("at", "", "issue an ID for an old row of `TIME`, or - for rows whose times are in the lines of standard input")}
	o.times = command.ChoiceFlag(cmd, "times", "read the instants of --at in the `FORM`", "rfc3339", "unix", "unix-ms")
	durationFlag(cmd, "unit", "take the instants of --at as exact to `DURATION` (default that of a tick, or 1s with --times unix)", &o.unit)
	for _, other := range []string{"count", "node", "strategy", "sequence-start", "window", "vmclock"} {
		cmd.MarkFlagsMutuallyExclusive("at", other)
	}
	return o
}

// parse reads an instant.
func (o *oldRows) parse(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	if *o.times == "rfc3339" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			err = fmt.Errorf("want an instant such as 2019-03-04T10:20:30Z, got %.40q: --times has other forms", text)
		}
		return t, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < -1<<53 || n > 1<<53:
		return time.Time{}, fmt.Errorf("want a whole number, since --times is %s, got %.40q", *o.times, text)
	case *o.times == "unix":
		return time.Unix(n, 0), nil
	}
	return time.UnixMilli(n), nil
}

// run prints the IDs of old rows. The layout is that of the store, and asked says that the user has named it.
func (o *oldRows) run(ctx context.Context, c *command.Console, p *claiming, asked bool, line func(snowflake.ID) (string, error)) error {
	if *o.at != "-" { // before the store is opened
		if _, err := o.parse(*o.at); err != nil {
			return cli.Usage(err)
		}
	}
	if *o.times == "unix" {
		o.unit = cmp.Or(o.unit, time.Second)
	}
	options := []generator.Option{generator.WithPastUnit(o.unit)}
	if asked {
		options = append(options, generator.WithLayout(*p.layout))
	}
	bounded, cancel := p.within(ctx)
	defer cancel()
	p.makes = false
	url, err := p.openable(bounded)
	if err != nil {
		return p.ended(ctx, bounded, err)
	}
	old, err := generator.OpenPast(bounded, url, options...)
	if err != nil {
		return p.ended(ctx, bounded, p.urlError(err))
	}
	defer func() { _ = old.Close() }()
	*p.layout = old.Layout()
	one := func(text string) error {
		t, err := o.parse(text)
		if err != nil {
			return cli.Usage(err)
		}
		id, err := o.id(ctx, p.place, old, t)
		if errors.Is(err, generator.ErrNotPast) {
			return cli.Usage(err)
		}
		if err != nil {
			return err
		}
		form, err := line(id)
		if err != nil {
			return err
		}
		c.Out.WriteString(form)
		return c.Out.WriteByte('\n') // a bufio.Writer that failed once fails for good
	}
	if *o.at != "-" {
		return one(*o.at)
	}
	return c.Lines(ctx, func(number int, line []byte, err error) error {
		if err != nil {
			err = cli.Usage(fmt.Errorf("%w, so it is no instant", err))
		} else {
			err = one(string(line))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return nil
	})
}

// id issues an ID. A store that does not answer is waited for up to --timeout: a long run must not end because it takes a moment.
func (o *oldRows) id(ctx context.Context, p *place, old *generator.Past, t time.Time) (snowflake.ID, error) {
	id, err := old.At(ctx, t)
	if !errors.Is(err, lease.ErrStore) {
		return id, err
	}
	bounded, cancel := p.within(ctx)
	defer cancel()
	id, err = old.At(bounded, t)
	return id, p.ended(ctx, bounded, err)
}
