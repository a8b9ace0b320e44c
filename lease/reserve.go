package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/stores"
)

// Reserve keeps the node numbers from to to, both included, for systems that do not use this store: no process
// claims them before until, and IDs that are issued with them later have times after it. Choose a date by which
// the last of those systems has ended.
//
// An earlier reservation is lengthened, and never shortened. A number of the past is retired instead, for good:
// see [RetirePast]. A number that is held, or whose last grant has not ended by the clock, is refused, with an
// error that wraps [ErrHeld]: the numbers before it are then reserved, and a second call does no harm. Only the
// options [WithLayout], [WithClock] and [WithTimeout] count. Other errors are those of [Claim].
func Reserve(ctx context.Context, store stores.Store, from, to int64, until time.Time, options ...Option) error {
	k, err := administer("Reserve", store, from, to, options)
	if err != nil {
		return err
	}
	now, end := k.clock.Now(), k.layout.End()
	if !until.After(now) || !until.Before(end) {
		return refuse("Reserve", "until %s: want a time after now, %s, and before the end of the layout, %s",
			until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
	}
	if err := k.checkFleet(ctx); err != nil {
		return err
	}
	for node := from; node <= to; node++ {
		err := k.checkInFleet("Reserve", node)
		if err == nil {
			err = k.reserve(ctx, node, k.limitAt(until))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *keys) reserve(ctx context.Context, node int64, limit uint64) error {
	unlock, err := k.lock(ctx, node)
	switch {
	case errors.Is(err, stores.ErrLocked):
		return heldError(node, "", err)
	case err != nil:
		return err
	}
	defer unlock()
	return again(func() error {
		c, err := k.readCell(ctx, node)
		if err != nil {
			return err
		}
		was := c.Record
		switch {
		case was.MovedTo != "":
			return movedError(node, was.MovedTo)
		case was.Reserved && was.Limit >= limit, was.Past == cell.Retired:
			return nil
		case was.Holder != "" && !k.locking() && was.Limit+was.Window >= k.tick():
			return heldError(node, was.Owner)
		case !was.Reserved && was.Past == "" && was.Limit > k.tick():
			return drive.Wrap(fmt.Sprintf("%v: IDs with node number %d may be issued until %s: reserve it then", ErrHeld, node, k.time(was.Limit).Format(timeFormat)), ErrHeld)
		}
		limit := max(limit, was.Limit)
		r := cell.Node{Floor: limit, Limit: limit, Window: k.config.window, Reserved: true, Write: cell.Token(), Last: was.Names(), Layout: k.spec}
		if was.Past != "" { // a store that went back is raised by reservations
			r = grant.Retire(r, k.end())
		}
		_, err = k.swap(ctx, node, c.Version, r)
		return err
	})
}
