package client

import (
	"context"
	"errors"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// Next returns one ID. While there are fetched IDs, it does not wait, allocates nothing, and does not look at
// ctx. Else it waits for a server until ctx ends, or, if no server answers, for one timeout of [WithTimeout]
// and one more for each further server that hangs.
//
// An ID is returned only with a nil error; otherwise the ID is 0 and the error wraps one of
//
//   - [ErrUnavailable]: no server has answered for the time of WithTimeout; it wraps [ErrBusy], too, if a
//     server rejected the request,
//   - the error of ctx, with the last failures of the servers, if there are any,
//   - [ErrDenied], [ErrRefused] and [ErrOutOfRange]: a server refused the request,
//   - [ErrClosed].
//
// With [WithFallback], its result takes the place of ErrUnavailable.
func (c *Client) Next(ctx context.Context) (snowflake.ID, error) {
	now := c.now()
	r := c.current.Load()
	if now < r.expires {
		if i := r.free.Add(1) - 1; i < r.count && c.original(r) {
			if i == r.soft {
				c.refill()
			}
			return r.at(i), nil
		}
	}
	r, i, _, err := c.takeN(ctx, 1)
	if err != nil {
		return c.fallBack(ctx, err)
	}
	return r.at(i), nil
}

// NextN fills ids with ascending IDs, and returns how many it filled: all of them, or fewer and an error of
// [Client.Next]. The filled IDs are valid in both cases. The promise of freshness holds at the moment at which
// the call took an ID: a call that waits for more IDs than servers issue at once returns with IDs that are
// older by its wait.
func (c *Client) NextN(ctx context.Context, ids []snowflake.ID) (int, error) {
	mark := c.marker.Load()
	for left := ids; len(left) > 0; {
		r, i, end, cause := c.takeN(ctx, uint64(len(left)))
		if now := c.marker.Load(); now != mark && len(left) < len(ids) {
			mark, left = now, ids // the original returns those before
			continue
		}
		if cause != nil {
			for j := range left {
				id, err := c.fallBack(ctx, cause)
				if err != nil {
					return len(ids) - len(left) + j, err
				}
				left[j] = id
			}
			return len(ids), nil
		}
		id := r.at(i)
		for j := range left[:end-i] {
			left[j] = id
			id += r.stride
		}
		left = left[end-i:]
	}
	return len(ids), nil
}

// takeN takes up to n IDs in a row, and waits for them if there are none.
func (c *Client) takeN(ctx context.Context, n uint64) (r *run, i, end uint64, err error) {
	for {
		now := c.now()
		if r = c.current.Load(); now < r.expires {
			if i, end = r.take(n); i < end && c.original(r) {
				if i <= r.soft && r.soft < end {
					c.refill()
				}
				return r, i, end, nil
			}
		}
		if err = c.acquire(ctx, n); err != nil {
			return nil, 0, 0, err
		}
	}
}

// acquire waits until a run has IDs to take, for a call that wants n.
func (c *Client) acquire(ctx context.Context, n uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	began, missed, waited := c.launched, c.missed, int64(-1)
	for {
		c.notice()
		now := c.now()
		switch {
		case c.closed:
			return ErrClosed
		case c.advance(now, 0):
			return nil
		case c.refused > began: // the request was sent within this call
			return c.refusal
		}
		if waited < 0 {
			waited = now
			c.stats.Waits++
			c.wanted += int64(n)
			defer func() {
				c.wanted -= int64(n)
				c.stats.Waited += time.Duration(c.now() - waited)
			}()
		}
		if ctx.Err() != nil {
			return endOf(ctx, "wait for an ID", c.away(forIDs, now))
		}
		c.plan(now)
		var until int64                         // or 0: until the request ends
		if c.asked == 0 || c.missed != missed { // else the request may still bring IDs
			end, err := c.outage(forIDs, now)
			if err != nil {
				return err
			}
			if until = min(end, c.routes[forIDs].due(now, 1)); c.asked > 0 {
				until = 0
			}
		}
		c.sleep(ctx, now, until)
	}
}

// sleep releases mu, and waits for a change, for the end of ctx, or for the time until, if
// that is not 0.
func (c *Client) sleep(ctx context.Context, now, until int64) {
	changed := c.changed
	c.mu.Unlock()
	defer c.mu.Lock()
	var due <-chan time.Time
	if until != 0 {
		timer := time.NewTimer(time.Duration(until - now))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-ctx.Done():
	case <-due:
	}
}

// fallBack returns an ID of the fallback if there is one for the error, and else the error.
func (c *Client) fallBack(ctx context.Context, cause error) (snowflake.ID, error) {
	if c.fallback == nil || ctx.Err() != nil || !errors.Is(cause, ErrUnavailable) {
		return 0, cause
	}
	id, err := c.fallback(ctx, cause)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Fallbacks++
	if now := c.now(); now >= c.quiet {
		c.quiet = now + int64(quietFor)
		c.logger.Warn("tickflake: IDs come from the fallback", "ids", c.stats.Fallbacks, "cause", cause)
	}
	return id, nil
}
