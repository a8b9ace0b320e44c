package client

import (
	"context"
	"errors"
	"time"
)

// askInTurn sends the request to one server after the other, until one serves it or refuses
// it for all.
func askInTurn[T any](ctx context.Context, c *Client, k kind, request func(context.Context, *server) (T, error)) (T, error) {
	var none T
	for _, s := range c.candidates(k) {
		answer, err := use(ctx, c, k, s, request)
		if err == nil {
			c.prefer(k, s)
			return answer, nil
		}
		if f, ok := errors.AsType[*failure](err); ok && f.final || ctx.Err() != nil {
			return none, err
		}
	}
	return none, errAllAway
}

// errAllAway says that no server may be asked now: the route knows why.
var errAllAway = errors.New("all servers are away")

// ask is askInTurn, but does not wait for a late answer before it goes on to the next server.
// The first answer counts; the other requests are canceled, and their IDs are never issued.
func ask[T any](ctx context.Context, c *Client, k kind, request func(context.Context, *server) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var none T
	type result struct {
		server *server
		answer T
		err    error
	}
	candidates := c.candidates(k)
	results := make(chan result, len(candidates)) // no request waits for its reader
	asked, running := 0, 0
	next := func() {
		s := candidates[asked]
		asked++
		running++
		c.running.Go(func() {
			answer, err := use(ctx, c, k, s, request)
			results <- result{s, answer, err}
		})
	}
	var late <-chan time.Time
	if c.hedging > 0 && len(candidates) > 1 {
		ticker := time.NewTicker(c.hedging)
		defer ticker.Stop()
		late = ticker.C
	}
	for {
		if running == 0 {
			if asked == len(candidates) {
				return none, errAllAway
			}
			next()
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				c.prefer(k, r.server)
				return r.answer, nil
			}
			if f, ok := errors.AsType[*failure](r.err); ok && f.final || ctx.Err() != nil {
				return none, r.err
			}
		case <-late:
			if asked < len(candidates) {
				c.mu.Lock()
				c.stats.Hedges++
				c.mu.Unlock()
				next()
			}
		}
	}
}
