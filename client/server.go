package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
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

	maxBatch int64 // that it has described last; 0: it has not, or has refused it since. Guarded by Client.mu
}

// dial makes a server. It connects with the first request.
func dial(address string, c *config) (*server, error) {
	s := &server{address: address}
	conn, err := grpc.NewClient(c.target+address, c.dialOptions()...)
	if err != nil {
		return nil, fmt.Errorf("%w: servers: %s: %w", ErrOption, address, err)
	}
	s.conn, s.stub = conn, tickflakev1.NewTickflakeServiceClient(conn)
	return s, nil
}

// known asks a server for its layout and limits, unless it has told them. The first that answers sets the layout of the
// client. Each answer with IDs has the fingerprint of its layout, by which a server that is another one by then is found.
func (c *Client) known(ctx context.Context, s *server) error {
	c.mu.Lock()
	known := s.maxBatch > 0
	c.mu.Unlock()
	if known {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layout == nil {
		c.layout, c.layoutOf, c.fingerprint = &layout, s.address, wire.Fingerprint(layout.String())
	} else if ours, theirs := c.layout.String(), layout.String(); ours != theirs {
		return &failure{server: s.address, kind: ErrLayout, cause: fmt.Errorf("it has %s, and %s has %s", theirs, c.layoutOf, ours)}
	}
	s.maxBatch = described.GetMaxBatch()
	return nil
}

// forget makes the next request ask for the limits of a server anew. It reports whether it had told them.
func (c *Client) forget(s *server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := s.maxBatch > 0
	s.maxBatch = 0
	return had
}

// errAllAway says that no server may be asked now: the route knows why.
var errAllAway = errors.New("all servers are away")

// ask sends the request to one server after the other, until one serves it or refuses it for all.
func ask[T any](ctx context.Context, c *Client, k kind, n int64, request func(context.Context, *server) (T, error)) (none T, err error) {
	for _, s := range c.candidates(k, n) {
		answer, err := use(ctx, c, k, s, n, request)
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

// use sends one request to a server within the timeout, and keeps the books about it. A server that refuses what it
// has allowed may have other limits since, and one with another layout may be another server, so it is asked once more for both.
func use[T any](ctx context.Context, c *Client, k kind, s *server, n int64, request func(context.Context, *server) (T, error)) (answer T, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var f *failure
	for again := true; ; again = false {
		if err = c.known(bounded, s); err == nil {
			answer, err = request(bounded, s)
		}
		if err == nil {
			c.succeeded(k, s, n)
			return answer, nil
		}
		if f, _ = errors.AsType[*failure](err); f == nil {
			f = failureOf(s.address, err)
		}
		stale := f.code == wire.BadInput && k != forNumbers || f.kind == ErrLayout
		if !stale || !c.forget(s) || !again {
			break
		}
	}
	if !f.final && !f.spared && ctx.Err() == nil && !callerEnds(ctx, bounded, f) {
		c.failed(k, s, n, f)
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
