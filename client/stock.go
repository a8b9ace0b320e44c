package client

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// stock holds the fetched IDs of a Client, and decides when to fetch more. Client.mu guards
// it.
type stock struct {
	last    snowflake.ID  // the largest ID of the runs that have ended, or 0
	queue   []pending     // runs behind the current one, by their first IDs
	queued  int64         // the number of their IDs
	wanted  int64         // IDs that calls wait for
	changed chan struct{} // closed when calls that wait should look again
	copies  int           // how often all was dropped: by Restored, or since the device said that this memory is a copy
	mark    uint64        // the marker of the page since then

	asked    int64         // IDs that the request which runs asks for, or 0 if none runs
	launched uint64        // how many requests were sent
	refusal  error         // the last one with which servers refused a request for IDs
	refused  uint64        // the number of that request, from 1 on
	missed   uint64        // how many requests no server served
	latency  time.Duration // from a request to its answer: up at once, and down slowly

	span     time.Duration // in which level counts: a quarter of the freshness
	level    float64       // IDs per span: the mean of the time so far, which fades with the span
	levelAt  int64         // when level was computed
	levelFor uint64        // how many IDs were issued then
}

// pending is a run that waits for its turn.
type pending struct {
	snowflake.Run
	expires int64
}

const (
	// These bound span, and so the IDs that a burst makes the client fetch.
	shortestSpan, longestSpan = 100 * time.Microsecond, time.Second
	// steady is the level from which on IDs are fetched before a call asks: two IDs come
	// within half the freshness, so that the next one is likely to be used in time.
	steady = 0.5
)

// measure brings the level up to date. It takes the IDs that were issued since the last time
// as spread evenly over the time since then.
func (c *Client) measure(now int64) {
	r := c.current.Load()
	issued := c.stats.Issued + r.count - uint64(r.rest())
	if spans := float64(now-c.levelAt) / float64(c.span); spans > 0 {
		faded := -math.Expm1(-spans) // what fades of 1
		c.level += float64(issued-c.levelFor)*faded/spans - c.level*faded
	} else {
		c.level += float64(issued - c.levelFor)
	}
	c.levelAt, c.levelFor = now, issued
}

// low is the number of IDs, at hand or asked for, below which more are asked for: those that
// are used while two answers come, but at most those of one span.
func (c *Client) low() int64 {
	if c.level < steady {
		return 0
	}
	ahead := c.level * min(1, 2*float64(c.latency)/float64(c.span))
	return min(1+int64(ahead), c.batch())
}

// batch is the largest number of IDs that a request may ask for.
func (c *Client) batch() int64 {
	batch := int64(math.MaxInt64)
	for _, s := range c.servers {
		if s.maxBatch > 0 {
			batch = min(batch, s.maxBatch)
		}
	}
	return batch
}

// plan starts a request if one is due. Only one runs at a time: of two, the answer that comes first often has
// the larger IDs, and those of the other would be dropped.
func (c *Client) plan(now int64) {
	c.measure(now)
	need := c.low() + c.wanted - c.current.Load().rest() - c.queued
	if need <= 0 || c.asked > 0 || c.routes[forIDs].due(now, 1) > now || c.closed {
		return
	}
	c.launched++
	c.asked = c.routes[forIDs].most(now, min(max(int64(c.level), need), c.batch()))
	n, copies := c.asked, c.copies
	c.running.Go(func() {
		a, err := ask(c.ctx, c, forIDs, n, func(ctx context.Context, s *server) (answer, error) { return c.take(ctx, s, n, 0) })
		c.deliver(a, copies, now, err)
	})
}

// refill is plan for a call that has its ID and does not hold mu.
func (c *Client) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan(c.now())
}

// advance makes a run current that has IDs to take, and reports whether there is one.
func (c *Client) advance(now int64) bool {
	if r := c.current.Load(); now < r.expires && r.rest() > 0 {
		return true
	}
	c.retire()
	for len(c.queue) > 0 {
		p := &c.queue[0]
		if p.First <= c.last {
			skip := min(int64(c.last-p.First)/p.Stride+1, p.Count)
			c.stats.Disordered += uint64(skip)
			c.queued -= skip
			p.First += snowflake.ID(skip * p.Stride)
			p.Count -= skip
		}
		if now >= p.expires {
			c.stats.Expired += uint64(p.Count)
			c.queued -= p.Count
			p.Count = 0
		}
		if p.Count > 0 {
			c.publish(*p, now)
			return true
		}
		c.queue = c.queue[1:]
	}
	return false
}

// publish makes the first pending run the current one. The one before it has ended.
func (c *Client) publish(p pending, now int64) {
	c.plan(now)
	r := &run{mark: c.mark, first: p.First, stride: snowflake.ID(p.Stride), count: uint64(p.Count), expires: p.expires, soft: math.MaxUint64}
	// At this index the IDs at hand and asked for fall below low.
	soft := c.queued + c.asked - c.low()
	if soft < 0 { // no request could be sent: try again soon
		soft = p.Count / 2
	}
	if soft < p.Count {
		r.soft = uint64(soft)
	}
	c.queue, c.queued = c.queue[1:], c.queued-p.Count
	c.current.Store(r)
}

// retire ends the current run. The IDs that are left go back into the queue.
func (c *Client) retire() {
	r := c.current.Load()
	if r == ended {
		return
	}
	used := r.seal()
	c.stats.Issued += used
	if used > 0 {
		c.last = max(c.last, r.at(used-1))
	}
	c.current.Store(ended)
	if left := int64(r.count - used); left > 0 {
		c.enqueue(pending{Run: snowflake.Run{First: r.at(used), Count: left, Stride: int64(r.stride)}, expires: r.expires})
	}
}

// enqueue puts a run into the queue.
func (c *Client) enqueue(p pending) {
	i, _ := slices.BinarySearchFunc(c.queue, p.First, func(q pending, first snowflake.ID) int { return cmp.Compare(q.First, first) })
	c.queue = slices.Insert(c.queue, i, p)
	c.queued += p.Count
}

// original reports whether this memory is the one that a run was given to. A copy of the memory has the same
// run, so a call looks after it has taken an ID and before it returns it.
func (c *Client) original(r *run) bool { return c.marker.Load() == r.mark }

// notice does what Restored does if the device says that this memory is a copy.
func (c *Client) notice() {
	if c.marker.Load() != c.mark {
		c.drop()
		c.stats.Copies++
		c.logger.Warn("tickflake: memory was restored, and its IDs are left to the original", "ids", c.stats.Lost, "by", c.page.By)
	}
}

// drop gives up all IDs that were fetched, and those that were asked for.
func (c *Client) drop() {
	c.retire()
	c.stats.Lost += uint64(c.queued)
	c.queue, c.queued = nil, 0
	c.copies++
	c.mark = c.marker.Load()
}

// largest is the largest ID that was taken. It may be out of date when largest returns.
func (c *Client) largest() snowflake.ID {
	if r := c.current.Load(); uint64(r.rest()) < r.count {
		return r.at(r.count - uint64(r.rest()) - 1)
	}
	return c.last
}

// wake makes the calls that wait look again.
func (c *Client) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// deliver ends a request that began at a time, after so many copies. After an error the answer has no ID.
func (c *Client) deliver(a answer, copies int, began int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = 0
	if refusal, ok := errors.AsType[*failure](err); err == errAllAway {
		c.routes[forIDs].roundFailed(began)
		c.missed++
	} else if ok {
		c.refusal, c.refused = refusal, c.launched
	}
	c.stats.Fetched += uint64(a.ids)
	if c.copies != copies { // of a Close as well
		c.stats.Lost += uint64(a.ids)
	} else if a.ids > 0 {
		c.latency = max(a.latency, c.latency-(c.latency-a.latency)/8)
		c.span = min(max(a.freshness/4, shortestSpan), longestSpan)
		for _, p := range a.runs {
			c.enqueue(p)
		}
	}
	c.wake()
}

// run is a run of IDs that the calls take from. It ends when its IDs are taken or when it is
// sealed, whichever is first. Then, and not before, [Client.advance] publishes the next one,
// whose IDs are all above those that were taken here. So IDs stay in order across the change:
//
//   - A call that still holds the old run gets no ID of it.
//   - A call that took an ID of the old run found it as the current one. So no ID of a later
//     run had been returned when the call began.
type run struct {
	// Not written again.
	first   snowflake.ID
	stride  snowflake.ID
	count   uint64
	expires int64  // on the client's clock: from then on no ID is taken
	mark    uint64 // the marker of the page in the memory to which the IDs were given
	soft    uint64 // the index whose taker asks for more IDs, or math.MaxUint64

	_ [cacheLine]byte
	// free is the lowest index that is not taken. An index belongs to the call that moved
	// free past it. For this reason no ID is returned twice, and IDs ascend. free only grows:
	// when it has reached count it stays there or above, and when it is sealed it stays
	// sealed. An addition is at most what a slice holds, and each call makes one beyond the end at
	// most, so it takes more calls at once than there can be to overflow.
	free atomic.Uint64
	_    [cacheLine - 8]byte
}

// cacheLine is the distance at which two words do not disturb each other on most processors.
const cacheLine = 64

// sealed is the bit of free that ends a run. Counts are below it.
const sealed = 1 << 63

// ended has no ID. It is the current run while there is none.
var ended = &run{expires: math.MinInt64}

// at returns the ID at index i.
func (r *run) at(i uint64) snowflake.ID { return r.first + snowflake.ID(i)*r.stride }

// take takes the IDs from index i up to, but not including, end: up to n of them, or none.
// n is at least 1. The caller has checked that the run has not expired.
func (r *run) take(n uint64) (i, end uint64) {
	i = r.free.Add(n) - n
	if i >= r.count {
		return 0, 0
	}
	return i, min(i+n, r.count)
}

// next is the next ID that is taken, or -1 if there is none.
func (r *run) next() snowflake.ID {
	if i := r.free.Load(); i < r.count {
		return r.at(i)
	}
	return -1
}

// rest is how many IDs are not taken.
func (r *run) rest() int64 { return int64(r.count - min(r.free.Load(), r.count)) }

// seal ends the run, and returns how many IDs were taken. No ID is taken after it.
func (r *run) seal() uint64 { return min(r.free.Or(sealed)&^sealed, r.count) }
