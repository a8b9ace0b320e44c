package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errAllAway says that no server may be asked now: the route knows why.
var errAllAway = errors.New("all servers are away")

// ask sends the request to one server after the other, until one serves it or refuses it for all.
// With a hedging above 0, it waits no longer than that for an answer before it goes on to the next
// server. The first answer counts; the other requests are canceled, and their IDs are never issued.
func ask[T any](ctx context.Context, c *Client, k kind, hedging time.Duration, request func(context.Context, *server) (T, error)) (none T, err error) {
	var requests sync.WaitGroup
	defer requests.Wait() // those that are canceled end at once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		server *server
		answer T
		err    error
	}
	candidates := c.candidates(k)
	results := make(chan result, len(candidates)) // no request waits for its reader
	asked, running := 0, 0
	var late <-chan time.Time
	if hedging > 0 && len(candidates) > 1 {
		ticker := time.NewTicker(hedging)
		defer ticker.Stop()
		late = ticker.C
	}
	for isLate := false; ; {
		if isLate || running == 0 {
			if asked == len(candidates) {
				return none, errAllAway
			}
			s := candidates[asked]
			asked++
			running++
			requests.Go(func() {
				answer, err := use(ctx, c, k, s, request)
				results <- result{s, answer, err}
			})
		}
		select {
		case r := <-results:
			running--
			isLate = false
			if r.err == nil {
				c.prefer(k, r.server)
				return r.answer, nil
			}
			if f, ok := errors.AsType[*failure](r.err); ok && f.final || ctx.Err() != nil {
				return none, r.err
			}
		case <-late:
			if isLate = asked < len(candidates); isLate {
				c.mu.Lock()
				c.stats.Hedges++
				c.mu.Unlock()
			}
		}
	}
}
