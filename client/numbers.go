package client

import (
	"context"
	"fmt"
	"strings"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
)

// Number returns the next number of a sequence. It is [Client.Numbers] for one number.
func (c *Client) Number(ctx context.Context, name string) (int64, error) {
	first, _, err := c.Numbers(ctx, name, 1)
	return first, err
}

// Numbers returns the next n numbers of a sequence, in a row: first, first + stride, … It asks a server in each
// call, and the next server when one fails: without a deadline it takes at most one timeout of [WithTimeout],
// and one more for each server that hangs. The numbers of an answer that was lost are a gap. The mode of the
// sequence says what order the numbers of several calls have: see package sequence.
//
// The error wraps one of
//
//   - [ErrUnavailable]: no server has answered for the time of WithTimeout,
//   - the error of ctx,
//   - [ErrNotFound]: there is no such sequence,
//   - [ErrOutOfRange]: fewer than n numbers are left,
//   - [ErrDenied] and [ErrRefused], the latter for a name that no sequence has, for an n that is not from 1
//     to the servers' limit, and for a store that needs an operator,
//   - [ErrClosed].
func (c *Client) Numbers(ctx context.Context, name string, n int64) (first, stride int64, err error) {
	if n < 1 {
		return 0, 0, fmt.Errorf("%w: asked for %d numbers, want 1 or more", ErrRefused, n)
	}
	if err := checkName(name); err != nil { // one that cannot be sent would look like a server that fails
		return 0, 0, err
	}
	what := fmt.Sprintf("numbers of sequence %q", name)
	request := &tickflakev1.NumberRequest{Name: name, Count: &n}
	for {
		began, mark := c.now(), c.marker.Load()
		answer, err := ask(ctx, c, forNumbers, n, func(ctx context.Context, s *server) (*tickflakev1.NumberResponse, error) {
			return checkNumbers(ctx, s, request)
		})
		c.mu.Lock()
		if err != nil {
			err = c.again(ctx, forNumbers, n, what, began, err)
		} else if c.marker.Load() == mark { // else the original returns them
			c.stats.Numbers += uint64(n)
			c.mu.Unlock()
			return answer.GetFirst(), answer.GetStride(), nil
		}
		c.mu.Unlock()
		if err != nil {
			return 0, 0, err
		}
	}
}

// checkName refuses a name that no sequence has: see sequence.ValidateName.
func checkName(name string) error {
	if len(name) < 1 || len(name) > 64 || name == "." || name == ".." || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return fmt.Errorf("%w: the name %.80q: want 1 to 64 characters of a-z, 0-9, dot, underscore and hyphen", ErrRefused, name)
	}
	return nil
}

// again returns the error of a call whose request has failed. If no server served it, again waits until
// one may be asked again, and returns nil. It is called with mu.
func (c *Client) again(ctx context.Context, k kind, n int64, what string, began int64, err error) error {
	now, r := c.now(), &c.routes[k]
	switch {
	case c.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return endOf(ctx, what, c.away(k, now))
	case err != errAllAway:
		return fmt.Errorf("%s: %w", what, err)
	}
	r.roundFailed(began)
	until, err := c.outage(k, now)
	if own := began + int64(c.timeout); err != nil && k == forAfter && now < own && r.rejects() {
		until, err = own, nil // what others saw before may have lain further ahead
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c.sleep(ctx, now, min(until, max(r.due(now, n), now+1)))
	return nil
}

// checkNumbers asks a server for numbers, and checks them.
func checkNumbers(ctx context.Context, s *server, request *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, error) {
	a, err := s.stub.Number(ctx, request)
	if err != nil {
		return nil, err
	}
	first, last, stride := a.GetFirst(), a.GetLast(), a.GetStride()
	if first < 0 || last < first || stride < 1 || a.GetCount() != request.GetCount() ||
		(last-first)%stride != 0 || (last-first)/stride != request.GetCount()-1 {
		return nil, &failure{server: s.address, cause: fmt.Errorf("its answer is not valid: %d numbers from %d to %d with stride %d, asked for %d", a.GetCount(), first, last, stride, request.GetCount())}
	}
	return a, nil
}
