package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/snowflake"
)

// Client issues IDs and numbers of a service. Make one with [Open], share it, and close it.
// Its methods are safe for use by any number of goroutines.
type Client struct {
	base time.Time // of the client's clock
	// current is the run that calls take IDs from. It moves on only after the run was used up
	// or sealed, to a run whose IDs are above those that were taken. The caller that moves it
	// holds mu.
	current atomic.Pointer[run]
	_       [cacheLine]byte

	// Not written again.
	*config
	marker  *word.Uint64 // of the page
	servers []*server
	ctx     context.Context // of the requests for IDs; ends with Close
	cancel  context.CancelFunc

	running sync.WaitGroup // the goroutines; none is added after closed is set

	mu          sync.Mutex
	closed      bool
	layout      *snowflake.Layout // set by the first server that answers, before Open returns, and not again
	layoutOf    string            // the address of that server
	fingerprint uint64            // of the layout
	routes      [kinds]route
	stats       Stats // without what Stats computes
	stock
}

// Open connects to the servers, HOST:PORT or unix:PATH each. It asks all of them for their layout at the same
// time, and waits for each until it answers, fails, or [WithTimeout] has passed. It fails with [ErrUnavailable]
// when none answers, with [ErrLayout] when two have different layouts, with the error of the server when one
// denies the token, and with [ErrOption]. A server that does not answer is asked again later.
//
// Open returns at once when ctx ends. The client does not keep ctx.
func Open(ctx context.Context, servers []string, options ...Option) (*Client, error) {
	config, err := configure(servers, options)
	if err != nil {
		return nil, err
	}
	c := &Client{base: time.Now(), config: config, marker: config.page.Marker}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.current.Store(ended)
	c.changed = make(chan struct{})
	c.span = longestSpan
	c.mark = c.marker.Load()
	for k := range c.routes {
		c.routes[k].health = make([]health, len(servers))
	}
	for i, address := range servers {
		conn, err := grpc.NewClient(config.target+address, config.dialOptions()...) // it connects with the first request
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("%w: servers: %s: %w", ErrOption, address, err)
		}
		c.servers = append(c.servers, &server{address: address, index: i, conn: conn, stub: tickflakev1.NewTickflakeServiceClient(conn)})
	}
	if err := c.describe(ctx); err != nil {
		c.Close()
		return nil, err
	}
	preferred := rand.IntN(len(servers)) // by all kinds: IDs of another server, whose clock is another, would make those that were fetched useless
	for k := range c.routes {
		c.routes[k].preferred = preferred
	}
	return c, nil
}

// describe asks all servers for their layouts.
func (c *Client) describe(ctx context.Context) error {
	began := c.now()
	results := make(chan error, len(c.servers))
	for _, s := range c.servers {
		c.running.Go(func() {
			_, err := use(c.ctx, c, forIDs, s, 1, func(context.Context, *server) (none struct{}, err error) { return none, nil })
			results <- err
		})
	}
	served := false
	for range c.servers {
		select {
		case err := <-results:
			f, failed := errors.AsType[*failure](err)
			if failed && (f.final || errors.Is(f, ErrLayout)) {
				return f
			}
			served = served || err == nil
		case <-ctx.Done():
			return endOf(ctx, "open a client", nil)
		}
	}
	if served {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.routes[forIDs].roundFailed(began)
	return c.away(forIDs, c.now())
}

// now is the client's clock. It is the machine's monotonic clock.
func (c *Client) now() int64 { return int64(time.Since(c.base)) }

// Layout returns the layout of the IDs, which decodes them.
func (c *Client) Layout() snowflake.Layout { return c.layout.Clone() }

// Restored tells the client that the process's memory was restored or copied: from a VM's snapshot, by
// SnapStart or by CRIU. Call it before the next ID. It drops all IDs that were fetched, so that the copy and
// the original do not both issue them. It asks no server, and fails only with [ErrClosed]. ctx is not used: the
// method has the form of those of generators and sequences.
func (c *Client) Restored(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.drop()
	return nil
}

// Close ends the client for good: later calls return [ErrClosed], and so do those that wait.
// Calls that run at the same time may still get their ID. It drops the IDs that were fetched,
// cancels the requests that run, and returns when all connections and goroutines have ended.
// It waits for no server. A second call does nothing and returns nil.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.drop()
	c.wake()
	c.mu.Unlock()
	c.cancel()
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.conn.Close())
	}
	c.running.Wait()
	return errors.Join(errs...)
}

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

	Waits    uint64 // calls of Next, NextN and NextAfter that waited for a server; the others touched no network
	Requests uint64 // requests for IDs
	Failures uint64 // requests that a server failed or rejected
	Numbers  uint64 // numbers of sequences

	Ahead int64 // IDs that are fetched and not taken; some of them may have expired
}

// Stats returns the counts so far. It takes the lock of the slow path, and does not slow
// Next down.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, r := c.stats, c.current.Load()
	s.Issued += r.count - uint64(r.rest())
	s.VMClock = c.page.By
	s.Ahead = r.rest() + c.queued
	return s
}
