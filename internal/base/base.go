// Package base makes the clock with which a generator or a keeper begins, and says when it cannot serve: the
// times of all IDs are as right as that clock is when it is made.
package base

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// Within are the arguments of WithWallWithin, the option of a generator and of a keeper.
type Within struct {
	Most  time.Duration
	Given bool
}

// Validate checks the option: given says whether the caller has given a clock.
func (w Within) Validate(ctx context.Context, given bool) error {
	why := ""
	_, deadline := ctx.Deadline()
	switch {
	case !w.Given:
		return nil
	case w.Most <= 0:
		why = fmt.Sprintf("limit of %s: want more than none, such as 3s", w.Most)
	case given:
		why = "a clock of WithClock has its own time: wait by monoclock.AwaitWall before you make it, and leave this option out (generator.Open has one of its name)"
	case !deadline:
		why = "the context has no deadline, and the wait would have no end: give one, such as 30s"
	default:
		return nil
	}
	return &stores.OptionError{Option: "WithWallWithin", Err: errors.New(why)}
}

// again is the time between two looks at a clock that is not set yet.
const again = 100 * time.Millisecond

// Await returns the clock: the one that is given, or else a new one, made once the wall clock is within the bound.
// While the clock reads a time before the epoch, it is not set yet, and Await tries again until ctx ends, if that has
// a deadline. All other errors of the clock are those of [Check].
func Await(ctx context.Context, given monoclock.Interface, within Within, layout snowflake.Layout, log *slog.Logger) (monoclock.Interface, error) {
	if within.Given {
		if err := AwaitWall(ctx, within.Most, log); err != nil {
			return nil, err
		}
	}
	for said := false; ; said = true {
		clock := given
		if clock == nil {
			clock = monoclock.New()
		}
		_, _, err := Check(clock, layout)
		if _, deadline := ctx.Deadline(); !deadline || !errors.Is(err, snowflake.ErrEarly) {
			return clock, nil
		}
		if !said {
			log.Warn("clock: waiting until it is set", "err", err)
		}
		after, _, _ := Waiting(clock)
		if after == nil {
			after = time.After
		}
		select {
		case <-after(again):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", pause.Ended(ctx), err)
		}
	}
}

// AwaitWall is [monoclock.AwaitWall], but says what it does.
func AwaitWall(ctx context.Context, most time.Duration, log *slog.Logger) error {
	if off, ok := monoclock.WallError(); !ok {
		log.Warn("clock: the kernel does not say how far the wall clock may be off: starting without a wait")
	} else if off > most {
		log.Info("clock: waiting until the wall clock was set", "off by up to", span.Text(off), "limit", span.Text(most))
	}
	return monoclock.AwaitWall(ctx, most)
}

// WallError is what the clock's WallError says, or -1s if it says nothing.
func WallError(clock any) time.Duration {
	if c, ok := clock.(interface{ WallError() (time.Duration, bool) }); ok {
		if most, ok := c.WallError(); ok {
			return most
		}
	}
	return -time.Second
}

// Check returns the clock's time, or why no ID can have it, and the option that is wrong.
func Check(clock monoclock.Interface, layout snowflake.Layout) (now time.Time, option string, err error) {
	start, _, machine := seam.Steady(clock)
	if now = clock.Now(); machine != nil && start == start.Round(0) && !start.Before(monotonicEnd) {
		return now, "WithClock", fmt.Errorf("the machine's clock reads %s, and from %s on Go measures no monotonic time: set it right, or give a clock of your own", now.Format(time.RFC3339), monotonicEnd.Format(time.DateOnly))
	}
	err = layout.ValidateAt(now)
	if !errors.Is(err, snowflake.ErrEarly) {
		return now, "WithLayout", err
	}
	if machine != nil && InBubble() {
		err = fmt.Errorf("%w: a bubble of testing/synctest begins in the year 2000: sleep in it until the epoch, which costs nothing there, or use a layout with an earlier one", err)
	}
	return now, "WithClock", err
}

// monotonicEnd is the first instant for which time.Now gives no monotonic reading: it keeps 33 bits of
// seconds since 1885 beside one.
var monotonicEnd = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Add(1 << 33 * time.Second)

// InBubble reports whether the time is that of a bubble of testing/synctest, which is a fake clock: it has
// no monotonic reading.
func InBubble() bool {
	now := time.Now()
	return now == now.Round(0) && now.Before(monotonicEnd)
}
