package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// connecting is how connections are made again. The delays are those of requests: a request
// that is due should find a new attempt to connect.
func (c *config) connecting() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: firstDelay, Multiplier: 2, Jitter: 0.2, MaxDelay: c.lastDelay()},
		MinConnectTimeout: c.timeout,
	}
}

// server is one of the servers of a Client.
type server struct {
	address string
	index   int // in Client.servers
	conn    *grpc.ClientConn
	stub    tickflakev1.TickflakeServiceClient
	// connects is the number of connections that were made. It is raised before a connection
	// takes its first request. So an answer came from the server that was checked if connects
	// was the same before the check and after the answer.
	connects atomic.Uint64

	// Guarded by Client.mu.
	checked  uint64 // connects at the last check of the layout, or 0
	maxBatch int64  // of the last check
}

func (s *server) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s *server) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (s *server) HandleRPC(context.Context, stats.RPCStats)                         {}
func (s *server) HandleConn(_ context.Context, e stats.ConnStats) {
	if _, ok := e.(*stats.ConnBegin); ok {
		s.connects.Add(1)
	}
}

// dial makes a server. It connects with the first request.
func dial(address string, c *config) (*server, error) {
	s := &server{address: address}
	conn, err := grpc.NewClient(c.target+address, append(c.dialOptions(), grpc.WithStatsHandler(s))...)
	if err != nil {
		return nil, fmt.Errorf("%w: servers: %s: %w", ErrOption, address, err)
	}
	s.conn, s.stub = conn, tickflakev1.NewTickflakeServiceClient(conn)
	return s, nil
}

// check makes sure that the layout of the server that the present connection leads to is that
// of the client. The first server that answers sets it.
func (c *Client) check(ctx context.Context, s *server) error {
	for {
		connects := s.connects.Load()
		c.mu.Lock()
		checked := s.checked
		c.mu.Unlock()
		if connects != 0 && connects == checked {
			return nil
		}
		described, err := s.stub.Describe(ctx, &tickflakev1.DescribeRequest{})
		if err != nil {
			return failureOf(s.address, err)
		}
		layout, err := snowflake.ParseLayout(described.GetLayout())
		if err != nil {
			return &failure{server: s.address, kind: ErrLayout, cause: err}
		}
		if described.GetMaxBatch() < 1 {
			return &failure{server: s.address, cause: fmt.Errorf("it serves batches of %d IDs, want 1 or more", described.GetMaxBatch())}
		}
		if err := c.agree(s, layout); err != nil {
			return err
		}
		if s.connects.Load() != connects {
			continue // made for this check, or anew: another server may have answered
		}
		c.mu.Lock()
		s.checked, s.maxBatch = connects, described.GetMaxBatch()
		c.mu.Unlock()
	}
}

// agree compares the layout of a server with that of the client, and sets it if there is none.
func (c *Client) agree(s *server, layout snowflake.Layout) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layout == nil {
		c.layout, c.layoutOf = &layout, s.address
		return nil
	}
	if ours, theirs := c.layout.String(), layout.String(); ours != theirs {
		return &failure{server: s.address, kind: ErrLayout, cause: fmt.Errorf("it has %s, and %s has %s", theirs, c.layoutOf, ours)}
	}
	return nil
}

// errMoved says that an answer may have come from a server that is not checked.
var errMoved = errors.New("the connection changed during the request")

// errAllAway says that no server may be asked now: the route knows why.
var errAllAway = errors.New("all servers are away")

// ask sends the request to one server after the other, until one serves it or refuses it for all.
func ask[T any](ctx context.Context, c *Client, k kind, request func(context.Context, *server) (T, error)) (none T, err error) {
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

// use sends one request to a server within the timeout, and keeps the books about it.
func use[T any](ctx context.Context, c *Client, k kind, s *server, request func(context.Context, *server) (T, error)) (answer T, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for {
		if err = c.check(bounded, s); err == nil {
			answer, err = request(bounded, s)
		}
		if err != errMoved {
			break
		}
	}
	if err == nil {
		c.succeeded(k, s)
		return answer, nil
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = failureOf(s.address, err)
	}
	if !f.final && !f.spared && ctx.Err() == nil && !callerEnds(ctx, bounded, f) {
		c.failed(k, s, f)
	}
	return answer, f
}

// callerEnds reports whether the request failed because the time of the caller's context,
// and not that of the client's timeout, was up: a server may see this first.
func callerEnds(ctx, bounded context.Context, f *failure) bool {
	caller, ok := ctx.Deadline()
	used, _ := bounded.Deadline()
	return ok && caller.Equal(used) && status.Code(f.cause) == codes.DeadlineExceeded
}
