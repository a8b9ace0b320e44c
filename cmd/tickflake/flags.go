package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// layoutFlag adds --layout. The default is the library's.
func layoutFlag(cmd *cobra.Command) *snowflake.Layout {
	layout := snowflake.Default()
	usage := "use the layout `NAME|SPEC`, see 'tickflake layout show' for the names, and its --help for specs"
	command.Flag(cmd, "layout", fmt.Sprintf("%s (default %q)", usage, layout.Name), &layout, snowflake.ParseLayout)
	return &layout
}

// strategyFlag adds --strategy. The default is the library's.
func strategyFlag(cmd *cobra.Command) *strategies.Strategy {
	strategy := strategies.Default()
	usage := "for full ticks, and for a clock that was stepped back, use the strategy `SPEC`: " +
		"reject, wait, wait:5ms, borrow:1s, a chain like borrow:1s,wait:5s, one per cause like exhausted=wait/behind=reject, or a name: default, twitter, leaf, last-timestamp-plus-one"
	command.Flag(cmd, "strategy", fmt.Sprintf("%s (default %q)", usage, fmt.Sprint(strategy)), &strategy, strategies.Parse)
	return &strategy
}

// clockFlags are the flags of the clock, for all commands that claim a node number.
type clockFlags struct {
	wait time.Duration // 0: none
	most time.Duration
}

// newClockFlags adds the flags.
func newClockFlags(cmd *cobra.Command) *clockFlags {
	f := &clockFlags{most: 3 * time.Second}
	durationFlag(cmd, "wait-for-clock", "wait at the start for up to `DURATION` until this machine's clock was set, and then start all the same (default none)", &f.wait)
	durationFlag(cmd, "clock-error", "for --wait-for-clock, a clock that was set may be off by `DURATION`, by the kernel's word", &f.most)
	return f
}

// awaitClock waits for the clock. The error is that of ctx.
func (f *clockFlags) awaitClock(ctx context.Context, log *slog.Logger) error {
	if f.wait == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	err := base.AwaitWall(bounded, f.most, log)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		log.Warn("clock: starting all the same, and the times of IDs may be wrong", "err", err)
	}
	return nil
}

// durationFlag adds a flag that takes a time above zero. Its value is the default.
func durationFlag(cmd *cobra.Command, name, usage string, value *time.Duration) {
	if *value > 0 {
		usage += fmt.Sprintf(" (default %s)", *value)
	}
	command.Flag(cmd, name, usage, value, func(s string) (time.Duration, error) {
		d, err := duration(s)
		if err == nil && d <= 0 {
			err = fmt.Errorf("want more than 0s, got %s", d)
		}
		return d, err
	})
}

// duration reads a flag's time.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 500ms or 5s, got %q", s)
	}
	return d, nil
}

// atLeast returns parse with a least value, if there is one.
func atLeast[T cmp.Ordered](least string, parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		value, err := parse(s)
		if low, none := parse(least); err == nil && none == nil && value < low {
			err = fmt.Errorf("want at least %v, got %v", low, value)
		}
		return value, err
	}
}

// wholeNumber reads a flag's decimal number. The flag package's own numbers
// take 010 for 8.
func wholeNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		err = fmt.Errorf("want a whole number of at most 64 bits, got %q", s)
	}
	return n, err
}

// upTo returns what reads a number from 1 to most.
func upTo(most int64) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := wholeNumber(s)
		if err == nil && (n < 1 || n > most) {
			err = fmt.Errorf("want 1 to %d, got %d", most, n)
		}
		return int(n), err
	}
}

// numberRange reads a number or a range such as 0-3, within least to most.
func numberRange(s string, least, most int64) (from, to int64, ok bool) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	from, err := wholeNumber(first)
	if err == nil {
		to, err = wholeNumber(last)
	}
	return from, to, err == nil && least <= from && from <= to && to <= most
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// program returns how the user can run this program.
func program() string {
	name := os.Args[0]
	if strings.Contains(name, string(filepath.Separator)+"go-build") {
		return "go run ./cmd/tickflake"
	}
	return quoted(name)
}

// quoted returns a word of a shell.
func quoted(word string) string {
	if strings.IndexFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-:,+@%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r)
	}) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
