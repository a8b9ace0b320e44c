package client

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/wire"
)

// kind is the kind of a request. A server may serve IDs and no numbers, while its store is
// away, or the other way round, or reject an ID above another that is too far ahead.
type kind int

const (
	forIDs   kind = iota
	forAfter      // whose size is the ID that was seen
	forNumbers
	kinds
)

// route says which server to ask for one kind of request. Client.mu guards it.
type route struct {
	preferred int      // index of the server that is asked first
	health    []health // of each server
	since     int64    // when the first request began that no server served, or 0 after a success
}

// health is the knowledge of a server.
type health struct {
	failures int   // in a row
	until    int64 // it is not asked before this time; 0 after a success
	size     int64 // if above 0, smaller requests are asked all the same: a rate rejected one of this size
	err      error // the last failure, or nil after a success
	logged   bool  // this failure is in the log
	quiet    int64 // nothing is logged before this time
}

// A server that failed is asked again after a delay from firstDelay on, which doubles with
// each failure up to lastDelay.
const firstDelay = 50 * time.Millisecond

// lastDelay lets a call ask a server several times within the timeout.
func (c *config) lastDelay() time.Duration { return min(2*time.Second, c.timeout/4) }

// quietFor is the least time between two messages about a server.
const quietFor = 10 * time.Second

// away reports whether a request for n is not to be asked now.
func (h *health) away(now, n int64) bool { return now < h.until && (h.size == 0 || n >= h.size) }

// most returns how many IDs some server may be asked for now, up to n: half of what was rejected, where all have done so.
func (r *route) most(now, n int64) int64 {
	best := int64(1)
	for i := range r.health {
		if !r.health[i].away(now, n) {
			return n
		}
		best = max(best, r.health[i].size/2)
	}
	return best
}

// candidates returns the servers that may be asked for n now, the preferred one first.
func (c *Client) candidates(k kind, n int64) []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, r := c.now(), &c.routes[k]
	var found []*server
	for i := range c.servers {
		i = (r.preferred + i) % len(c.servers)
		if !r.health[i].away(now, n) {
			found = append(found, c.servers[i])
		}
	}
	return found
}

func (c *Client) succeeded(k kind, s *server, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.routes[k]
	r.since, r.preferred = 0, s.index
	h := &r.health[s.index]
	if h.size > n && h.away(c.now(), h.size) {
		return // larger ones wait as before
	}
	if h.logged {
		c.logger.Info("tickflake: server serves again", "server", s.address)
	}
	h.failures, h.until, h.size, h.err, h.logged = 0, 0, 0, nil, false
}

func (c *Client) failed(k kind, s *server, n int64, f *failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Failures++
	h, now := &c.routes[k].health[s.index], c.now()
	delay := f.after
	if delay == 0 {
		if !h.away(now, n) { // else it failed other requests that ran at the same time
			h.failures = min(h.failures+1, 10)
		}
		// There is no failure in a row if the server named the delay of those so far.
		delay = min(firstDelay<<max(h.failures-1, 0), c.lastDelay())
		delay = delay/2 + rand.N(delay/2+1)
	}
	h.err, h.until, h.size = f, now+int64(delay), 0
	if f.code == wire.Busy && f.after > 0 && n > 1 {
		h.size = n
	}
	if !h.logged && now >= h.quiet {
		h.logged, h.quiet = true, now+int64(quietFor)
		c.logger.Warn("tickflake: server does not serve, and is asked again later", "err", f, "after", delay)
	}
}

// rejects reports whether a server has rejected a request for its size, and so says nothing of smaller ones.
func (r *route) rejects() bool {
	return slices.ContainsFunc(r.health, func(h health) bool { return h.size > 0 })
}

// roundFailed notes that no server served a request that began at a time.
func (r *route) roundFailed(began int64) {
	if r.since == 0 {
		r.since = max(began, 1)
	}
}

// due is the time from which a server may be asked for n: now or earlier if one may be asked now.
func (r *route) due(now, n int64) int64 {
	due := int64(math.MaxInt64)
	for _, h := range r.health {
		if !h.away(now, n) {
			return now
		}
		due = min(due, h.until)
	}
	return due
}

// outage returns the error of calls if no server has served a request for the timeout, and
// else nil and the time at which that will be so.
func (c *Client) outage(k kind, now int64) (until int64, err error) {
	if until = cmp.Or(c.routes[k].since, now) + int64(c.timeout); now < until {
		return until, nil
	}
	return now, c.away(k, now)
}

// away returns the error that names the last failure of each server, or nil if none failed.
func (c *Client) away(k kind, now int64) error {
	r := &c.routes[k]
	if r.since == 0 {
		return nil
	}
	err := fmt.Errorf("%w for %s: see what each says", ErrUnavailable, time.Duration(now-r.since).Round(time.Millisecond))
	for i := range r.health {
		if h := &r.health[i]; h.err != nil {
			err = fmt.Errorf("%w; %w", err, h.err)
		}
	}
	return err
}
