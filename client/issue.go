package client

import (
	"context"
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
		return 0, err
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
		r, i, end, err := c.takeN(ctx, uint64(len(left)))
		if now := c.marker.Load(); now != mark && len(left) < len(ids) {
			mark, left = now, ids // the original returns those before
			continue
		}
		if err != nil {
			return len(ids) - len(left), err
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
	began, missed, waits := c.launched, c.missed, false
	for {
		c.notice()
		now := c.now()
		switch {
		case c.closed:
			return ErrClosed
		case c.advance(now):
			return nil
		case c.refused > began: // the request was sent within this call
			return c.refusal
		}
		if !waits {
			waits = true
			c.stats.Waits++
			c.wanted += int64(n)
			defer func() { c.wanted -= int64(n) }()
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

// NextAfter returns one ID that is larger than seen, an ID of the same layout from whatever machine, and
// in all else is [Client.Next]. So a reply has a larger ID than the message that it answers. It takes a
// fetched ID if the next one is above seen; otherwise it asks a server, and drops the IDs at hand that are below the answer.
//
// A server rejects a seen that lies further ahead of its clock than it allows: 100 ms by default. Then the
// call asks the next one, and waits until one allows it. Calls with a smaller seen, and other calls, do not wait with it.
// The errors are those of Next.
func (c *Client) NextAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	for began := c.now(); ; {
		if c.current.Load().next() > seen {
			if id, err := c.Next(ctx); err != nil || id > seen { // it is not if that run expired, and the next is of another server
				return id, err
			}
		}
		if id, err := c.askAfter(ctx, seen, began); id != 0 || err != nil {
			return id, err
		}
	}
}

// askAfter asks a server for an ID above seen. Then all that was fetched is dropped up to it, so that no later call gets a
// smaller one. It returns 0 if the next one at hand is, or if a server may be asked again. The call has begun at a time.
func (c *Client) askAfter(ctx context.Context, seen snowflake.ID, began int64) (snowflake.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notice()
	if c.closed {
		return 0, ErrClosed
	}
	if c.advance(c.now()) && c.current.Load().next() > seen {
		return 0, nil
	}
	c.stats.Waits++
	copies, above := c.copies, max(seen, c.largest())
	c.mu.Unlock()
	a, err := ask(ctx, c, forAfter, int64(above), func(ctx context.Context, s *server) (answer, error) { return c.take(ctx, s, 1, above) })
	c.mu.Lock()
	if err != nil {
		return 0, c.again(ctx, forAfter, int64(above), "an ID above one that was seen", began, err)
	}
	c.stats.Fetched++
	if c.notice(); copies != c.copies {
		c.stats.Lost++
		return 0, nil
	}
	c.stats.Issued++
	id := a.runs[0].First
	c.retire() // others may have taken IDs above it since
	c.last = max(c.last, id)
	return id, nil
}
