package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// Reserve leaves a node number to the old generators: no process that claims it in this
// store is granted any time before until. Call it for each number that they use, before
// the first new process starts. A number that is reserved cannot be kept by a new process
// as well, with [lease.WithNode]: that would have no time to issue IDs for.
func Reserve(ctx context.Context, store lease.Store, layout snowflake.Layout, node int64, until time.Time) error {
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout),
		lease.WithNode(lease.NodeNumber(node)), lease.WithClock(standing(until)))
	if err != nil {
		return err
	}
	return keeper.Close() // nothing was issued, so the grant is given back to where it began
}

// standing is a clock that stands still.
type standing time.Time

func (s standing) Now() time.Time { return time.Time(s) }

// ReservedError reports that a node number has no time of the next 24 hours to issue IDs
// for: it is reserved, or the clock of its last holder was ahead.
type ReservedError struct {
	Node  int64
	From  time.Time     // when its time begins
	Ahead time.Duration // of the clock
}

func (e *ReservedError) Error() string {
	return fmt.Sprintf("node number %d can issue no ID before %s, %s from now: it is reserved, or the clock of its last holder was ahead; a reserved number cannot be kept by WithNode: choose one or the other",
		e.Node, e.From.Format(time.RFC3339), e.Ahead.Round(time.Second))
}

// notReserved gives the keeper's number back, and says so, if no ID could be issued with it
// within a day. Without that, every call would be rejected, or wait, until then.
func notReserved(keeper *lease.Keeper, clock *monoclock.Clock) error {
	from, _ := keeper.Granted()
	ahead := from.Sub(clock.Now())
	if ahead <= 24*time.Hour {
		return nil
	}
	return errors.Join(&ReservedError{keeper.Node(), from, ahead}, keeper.Close())
}
