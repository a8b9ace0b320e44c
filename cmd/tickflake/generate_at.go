package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	progress, told := c.Progress(), time.Now()
	return c.Lines(ctx, func(number int, line []byte, err error) error {
		if err != nil {
			err = cli.Usage(fmt.Errorf("%w, so it is no instant", err))
		} else {
			err = one(string(line))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if now := time.Now(); number%4096 == 0 && now.Sub(told) > time.Second {
			told = now
			progress(command.Number(int64(number)) + " IDs")
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
