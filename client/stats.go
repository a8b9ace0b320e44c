package client

import (
	"math"
	"time"
)

// Stats has the counts of a [Client] since it was opened, and its present state.
//
// Fetched is the sum of those IDs that are Issued, Expired, Disordered, Lost or Ahead. IDs
// of calls of NextN that failed count as Issued.
type Stats struct {
	Issued     uint64 // IDs taken from runs
	Fetched    uint64 // IDs in the answers of servers
	Expired    uint64 // IDs that were dropped because their time became too old
	Disordered uint64 // IDs that were dropped because they were not above the last one
	Lost       uint64 // IDs that were dropped by [Client.Restored] and [Client.Close]

	// Copies are the times that this memory was found to be a copy, by VMClock: the device and its field, or ""
	// if only [Client.Restored] tells. See [WithVMClock].
	Copies  uint64
	VMClock string

	Waits     uint64        // calls of Next, NextN and NextAfter that waited for a server; the others touched no network
	Waited    time.Duration // by these calls, in all
	Requests  uint64        // requests for IDs
	Failures  uint64        // requests that a server failed or rejected
	Fallbacks uint64        // IDs of the fallback
	Numbers   uint64        // numbers of sequences

	Ahead   int64   // IDs that are fetched and not taken; some of them may have expired
	Rate    float64 // IDs per second, of the last quarter of the freshness
	Servers []ServerStats
}

// ServerStats is the knowledge of a [Client] about one server.
type ServerStats struct {
	Address   string
	Preferred bool  // it is asked for IDs first
	Err       error // why it is not asked for IDs now, or nil
}

// Stats returns the counts so far. It takes the lock of the slow path, and does not slow
// Next down.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.measure(now)
	s := c.stats
	r := c.current.Load()
	s.Issued += r.count - uint64(r.rest())
	s.VMClock = c.page.By
	s.Ahead = r.rest() + c.queued
	s.Rate = c.level / c.span.Seconds()
	s.Servers = make([]ServerStats, len(c.servers))
	for i, server := range c.servers {
		s.Servers[i] = ServerStats{Address: server.address, Preferred: i == c.routes[forIDs].preferred}
		if h := &c.routes[forIDs].health[i]; h.away(now, math.MaxInt64) {
			s.Servers[i].Err = h.err
		}
	}
	return s
}
