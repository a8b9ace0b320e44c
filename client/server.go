package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/snowflake"
)

// server is one of the servers of a Client.
type server struct {
	address string
	index   int // in Client.servers
	conn    *grpc.ClientConn
	stub    tickflakev1.TickflakeServiceClient

	maxBatch int64 // that it has described last; 0: it has not, or has refused it since. Guarded by Client.mu
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
	if c.token != "" {
		bounded = metadata.AppendToOutgoingContext(bounded, "authorization", "Bearer "+c.token)
	}
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
	if end, ok := ctx.Deadline(); ok && status.Code(f.cause) == codes.DeadlineExceeded && time.Until(end) < early {
		<-ctx.Done() // or the call would look for another server in its last moments, and say that none serves
	}
	if !f.final && ctx.Err() == nil {
		c.failed(k, s, n, f)
	}
	return answer, f
}

// early is by how much a server, or gRPC's own timer, may see a deadline before the caller's context does.
const early = 10 * time.Millisecond

// answer is the answer of a server.
type answer struct {
	runs      []pending
	ids       int64
	freshness time.Duration // the shortest of the runs
	latency   time.Duration
}

// longestLag bounds how long a server whose clock is behind is not asked.
const longestLag = 2 * time.Second

// take asks a server for up to n IDs, all above seen unless it is 0.
func (c *Client) take(ctx context.Context, s *server, n int64, seen snowflake.ID) (answer, error) {
	c.mu.Lock()
	c.stats.Requests++
	n = min(n, s.maxBatch)
	largest, layout, fingerprint := c.largest(), c.layout, c.fingerprint
	c.mu.Unlock()
	asked := c.now() // the server reads its clock later than this
	response, err := s.stub.Take(ctx, &tickflakev1.TakeRequest{Count: &n, After: int64(seen)})
	if err != nil {
		return answer{}, err
	}
	if response.GetLayoutFingerprint() != fingerprint {
		return answer{}, &failure{server: s.address, kind: ErrLayout, cause: errors.New("its answer has another layout than before")}
	}
	a := answer{latency: time.Duration(c.now() - asked), freshness: math.MaxInt64}
	for _, r := range response.GetRuns() {
		p, err := checkRun(layout, r, n-a.ids, asked)
		if err != nil {
			return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer is not valid: %w", err)}
		}
		a.runs = append(a.runs, p)
		a.ids += p.Count
		a.freshness = min(a.freshness, time.Duration(p.expires-asked))
	}
	if len(a.runs) == 0 {
		return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer has none of the %d IDs", n)}
	}
	if a.latency >= a.freshness {
		return answer{}, &failure{server: s.address, cause: fmt.Errorf("its answer took %s, and its IDs are to be used within %s", a.latency, a.freshness)}
	}
	// A server issues IDs above those that it issued before. So these are IDs of a server
	// whose clock is behind that of the server before.
	floor := cmp.Or(seen, largest)
	if last := a.runs[len(a.runs)-1].Last(); last <= floor {
		behind := lag(layout, last, floor)
		return answer{}, &failure{server: s.address, after: min(behind, longestLag),
			cause: fmt.Errorf("its IDs are %s behind %d, which came from another server: check the clocks of the servers", behind, floor)}
	}
	return a, nil
}

// checkRun checks a run of an answer that may have up to most IDs.
func checkRun(layout *snowflake.Layout, r *tickflakev1.Run, most, asked int64) (p pending, err error) {
	p.Run = snowflake.Run{First: snowflake.ID(r.GetFirst()), Count: r.GetCount(), Stride: r.GetStride()}
	freshness := r.GetUseWithin().AsDuration()
	switch {
	case p.Count < 1 || p.Count > most:
		return p, fmt.Errorf("a run has %d IDs, want 1 to %d", p.Count, most)
	case p.First < 1 || p.Stride < 1 || (p.Count-1) > (math.MaxInt64-int64(p.First))/p.Stride:
		return p, fmt.Errorf("a run of %d IDs begins at %d with stride %d, want positive IDs of 63 bits", p.Count, p.First, p.Stride)
	case freshness <= 0:
		return p, fmt.Errorf("the IDs are to be used within %s, want more than 0", freshness)
	}
	first, err := layout.Decode(p.First)
	last, errLast := layout.Decode(p.Last())
	if err = cmp.Or(err, errLast); err != nil {
		return p, err
	}
	if first.Node != last.Node || !first.Time.Equal(last.Time) || last.Sequence-first.Sequence != p.Count-1 {
		return p, fmt.Errorf("the run from %d to %d is not of one node and one tick in the layout %s", p.First, p.Last(), layout)
	}
	p.expires = asked + min(int64(freshness), math.MaxInt64-asked)
	return p, nil
}

// lag is how far the time in an ID is behind that in another one, and at least a tick.
func lag(layout *snowflake.Layout, id, other snowflake.ID) time.Duration {
	a, errA := layout.Decode(id)
	b, errB := layout.Decode(other)
	if errA != nil || errB != nil {
		return layout.Tick
	}
	return max(b.Time.Sub(a.Time)+layout.Tick, layout.Tick)
}
