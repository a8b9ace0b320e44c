package client

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/snowflake"
)

// NextAfter returns one ID that is larger than seen, an ID of the same layout from whatever machine, and
// in all else is [Client.Next]. So a reply has a larger ID than the message that it answers. It takes a
// fetched ID if one is above seen, and drops those below it; otherwise it asks a server.
//
// A server rejects a seen that lies further ahead of its clock than it allows: 100 ms by default. Then the
// call asks the next one. If all reject it, the call waits until the first allows it, if that is within
// [WithTimeout]; else the error wraps [ErrBusy], and other calls are not harmed. The other errors are those
// of Next. The fallback of [WithFallback] has no part in it.
func (c *Client) NextAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	for {
		now := c.now()
		r := c.current.Load()
		if now < r.expires && r.next() > seen { // and so are all IDs behind it
			if i := r.free.Add(1) - 1; i < r.count && c.original(r) {
				if i == r.soft {
					c.refill()
				}
				return r.at(i), nil
			}
		}
		if id, err := c.acquireAfter(ctx, seen); id != 0 || err != nil {
			return id, err
		}
	}
}

// acquireAfter asks a server for an ID above seen. It returns 0 if there is one at hand.
func (c *Client) acquireAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began, due := c.now(), int64(0) // due is when one of the servers that have rejected seen will not
	for first := true; ; first = false {
		c.notice()
		now := c.now()
		switch {
		case c.closed:
			return 0, ErrClosed
		case c.reaches(now, seen):
			if c.advance(now, seen) {
				return 0, nil
			}
			continue // the time of the IDs was up
		case ctx.Err() != nil:
			return 0, endOf(ctx, "wait for an ID", c.away(forAfter, now))
		case now < due:
			c.sleep(ctx, now, due)
			continue
		}
		if first {
			c.stats.Waits++
		}
		id, err := c.askAfter(ctx, max(seen, c.largest()))
		if err == nil && id > seen {
			return id, nil
		}
		if busy, ok := errors.AsType[*failure](err); ok && busy.kind == ErrBusy && busy.after > 0 && c.now()+int64(busy.after) <= began+int64(c.timeout) {
			due = c.now() + int64(busy.after)
		} else if err != nil {
			if err = c.again(ctx, forAfter, 1, "an ID above one that was seen", now, err); err != nil {
				return 0, err
			}
		}
	}
}

// askAfter asks a server for an ID above seen. Then all that was fetched is dropped up to it, so that no
// later call gets a smaller one. It is called with mu, and returns 0 if the ID may not be used.
func (c *Client) askAfter(ctx context.Context, seen snowflake.ID) (snowflake.ID, error) {
	copies := c.copies
	var rejected *failure // with the shortest delay, if any names one; guarded by mu
	c.mu.Unlock()
	a, err := ask(ctx, c, forAfter, 1, func(ctx context.Context, s *server) (answer, error) {
		a, err := c.take(ctx, s, 1, seen)
		if status.Code(err) == codes.ResourceExhausted {
			f := failureOf(s.address, err)
			f.spared = true
			c.mu.Lock()
			defer c.mu.Unlock()
			if rejected == nil || rejected.after == 0 || 0 < f.after && f.after < rejected.after {
				rejected = f
			}
			return a, f
		}
		return a, err
	})
	c.mu.Lock()
	if err == errAllAway && rejected != nil {
		err = rejected
	}
	if err != nil {
		return 0, err
	}
	c.stats.Fetched++
	c.notice()
	if copies != c.copies {
		c.stats.Lost++
		return 0, nil
	}
	c.stats.Issued++
	id := a.runs[0].First
	c.retire() // others may have taken IDs above it since
	c.last = max(c.last, id)
	return id, nil
}

// reaches reports whether an ID above seen is at hand.
func (c *Client) reaches(now int64, seen snowflake.ID) bool {
	if r := c.current.Load(); now < r.expires && r.rest() > 0 && r.at(r.count-1) > seen {
		return true
	}
	for i := range c.queue {
		if p := &c.queue[i]; now < p.expires && p.Last() > max(seen, c.last) {
			return true
		}
	}
	return false
}
