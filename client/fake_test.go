package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/snowflake"
)

// fake is a server whose faults a test sets. It issues IDs as a server does: above all that
// it issued before, by its own clock, and one run per tick.
type fake struct {
	tickflakev1.UnimplementedTickflakeServiceServer
	address string
	node    int64
	server  *grpc.Server

	mu        sync.Mutex
	listener  *bufconn.Listener
	silent    *atomic.Bool // what is sent through connections that were made before it is set is lost
	layout    snowflake.Layout
	maxBatch  int64
	useWithin time.Duration
	skew      time.Duration // of its clock
	fault
	free   uint64         // the next slot: tick, sequence
	last   int64          // number
	counts []int64        // of the requests for IDs
	calls  map[string]int // by method
	tokens []string
}

// fault is what a fake does wrong.
type fault struct {
	only   string                          // the method, or "" for all
	hang   bool                            // it answers when the request is canceled
	err    error                           // its answer
	delay  time.Duration                   // of the answer, after the IDs were taken
	change func(*tickflakev1.TakeResponse) // of the answer
	after  bool                            // only to a request for an ID above another
	number func(*tickflakev1.NumberResponse)
	refuse func(count int64) error // a request for IDs
}

// layout is the default one with an epoch before the time at which synctest begins, 2000.
func layout() snowflake.Layout {
	l := snowflake.Default()
	l.Epoch = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}

// virtual runs a test in virtual time, with the servers 1 to n.
func virtual(t *testing.T, n int, test func(*testing.T, []*fake)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var servers []*fake
		for i := range n {
			f := &fake{node: int64(i + 1), address: fmt.Sprintf("server-%d:9380", i+1), silent: new(atomic.Bool),
				layout: layout(), maxBatch: 10_000, useWithin: time.Second, calls: map[string]int{}}
			f.listen()
			t.Cleanup(func() { f.server.Stop() })
			servers = append(servers, f)
		}
		test(t, servers)
	})
}

// open connects a client with the servers. It asks the first one first.
func open(t testing.TB, servers []*fake, options ...Option) *Client {
	c, err := tryOpen(t.Context(), servers, options...)
	require.NoError(t, err)
	drawn := c.routes[forIDs].preferred
	for k := range c.routes {
		assert.Equal(t, drawn, c.routes[k].preferred, "of all kinds the same one")
		c.routes[k].preferred = 0
	}
	t.Cleanup(func() {
		sums(t, c)
		require.NoError(t, c.Close())
		sums(t, c)
	})
	return c
}

// sums checks that each ID that was fetched is counted once.
func sums(t testing.TB, c *Client) {
	s := c.Stats()
	assert.Equal(t, s.Fetched, s.Issued+s.Expired+s.Disordered+s.Lost+uint64(s.Ahead), "%+v", s)
}

func tryOpen(ctx context.Context, servers []*fake, options ...Option) (*Client, error) {
	var addresses []string
	for _, s := range servers {
		addresses = append(addresses, s.address)
	}
	through := func(c *config) { // no name is looked up
		c.dial, c.target = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return servers[slices.Index(addresses, address)].dial(ctx)
		})}, "passthrough:///"
	}
	return Open(ctx, addresses, append([]Option{WithLogger(slog.New(slog.DiscardHandler)), through}, options...)...)
}

func nextN(t testing.TB, c *Client, ids []snowflake.ID) {
	n, err := c.NextN(t.Context(), ids)
	require.NoError(t, err)
	require.Len(t, ids, n)
}

// next takes an ID, and returns how long that took.
func next(t testing.TB, c *Client) (snowflake.ID, time.Duration) {
	t.Helper()
	began := time.Now()
	id, err := c.Next(t.Context())
	require.NoError(t, err)
	return id, time.Since(began)
}

func (f *fake) dial(ctx context.Context) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	conn, err := f.listener.DialContext(ctx)
	return &link{conn, f.silent}, err
}

// link is a connection of a fake.
type link struct {
	net.Conn
	silent *atomic.Bool
}

func (l *link) Write(p []byte) (int, error) {
	if l.silent.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

// listen serves, until the server is stopped, which cuts all connections.
func (f *fake) listen() {
	l := bufconn.Listen(1 << 16)
	f.set(func() { f.listener = l })
	f.server = grpc.NewServer()
	tickflakev1.RegisterTickflakeServiceServer(f.server, f)
	go f.server.Serve(l)
}

// set changes the server.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// has gives the server a fault in place of the one that it has, or takes it away.
func (f *fake) has(fault fault) { f.set(func() { f.fault = fault }) }

// fails makes the server answer with an error, or as it should if it is nil.
func (f *fake) fails(err error) { f.has(fault{err: err}) }

// asked returns how often a method was called.
func (f *fake) asked(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// enter begins a call, and returns with mu held if it succeeds.
func (f *fake) enter(ctx context.Context, method string) error {
	f.mu.Lock()
	f.calls[method]++
	md, _ := metadata.FromIncomingContext(ctx)
	f.tokens = append(f.tokens, md.Get("authorization")...)
	if f.only == "" || f.only == method {
		if fault := f.fault; fault.hang || fault.err != nil {
			f.mu.Unlock()
			if fault.hang {
				fault.delay = math.MaxInt64
			}
			return cmp.Or(wait(ctx, fault.delay), fault.err)
		}
	}
	return nil
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-time.After(d):
		return nil
	}
}

func (f *fake) Describe(ctx context.Context, _ *tickflakev1.DescribeRequest) (*tickflakev1.DescribeResponse, error) {
	if err := f.enter(ctx, "Describe"); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return &tickflakev1.DescribeResponse{Layout: f.layout.String(), MaxBatch: f.maxBatch, UseWithin: durationpb.New(f.useWithin)}, nil
}

func (f *fake) Take(ctx context.Context, r *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	if err := f.enter(ctx, "Take"); err != nil {
		return nil, err
	}
	delay := f.delay
	if r.GetCount() > f.maxBatch {
		f.mu.Unlock()
		return nil, status.Errorf(codes.InvalidArgument, "asked for %d IDs: want 1 to %d", r.GetCount(), f.maxBatch)
	}
	f.counts = append(f.counts, r.GetCount())
	if f.refuse != nil && (!f.after || r.GetAfter() != 0) {
		if err := f.refuse(r.GetCount()); err != nil {
			f.mu.Unlock()
			return nil, err
		}
	}
	response := &tickflakev1.TakeResponse{LayoutFingerprint: wire.Fingerprint(f.layout.String())}
	node, bits := f.layout.NodeBits, f.layout.SequenceBits
	f.free = max(f.free, uint64(time.Now().Add(f.skew).Sub(f.layout.Epoch)/f.layout.Tick)<<bits)
	if r.GetAfter() != 0 { // from its next tick on
		f.free = max(f.free, uint64(r.GetAfter()>>(node+bits)+1)<<bits)
	}
	for left := uint64(r.GetCount()); left > 0; {
		n := min(left, (f.free|(1<<bits-1))+1-f.free)
		id, stride := int64(f.free>>bits<<(bits+node)|uint64(f.node)<<bits|f.free&(1<<bits-1)), int64(1)
		if f.layout.Order == snowflake.TimeSequenceNode {
			id, stride = int64(f.free<<node|uint64(f.node)), 1<<node
		}
		response.Runs = append(response.Runs, &tickflakev1.Run{First: id, Count: int64(n), Stride: stride, UseWithin: durationpb.New(f.useWithin)})
		f.free += n
		left -= n
	}
	if f.change != nil && (!f.after || r.GetAfter() != 0) {
		f.change(response)
	}
	f.mu.Unlock()
	return response, wait(ctx, delay)
}

func (f *fake) Number(ctx context.Context, r *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, error) {
	if err := f.enter(ctx, "Number"); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	response := &tickflakev1.NumberResponse{First: 2*f.last + 1, Last: 2*(f.last+r.GetCount()) - 1, Count: r.GetCount(), Stride: 2}
	f.last += r.GetCount()
	if f.fault.number != nil {
		f.fault.number(response)
	}
	return response, nil
}

// node returns the node of an ID.
func node(t testing.TB, id snowflake.ID) int64 {
	d, err := layout().Decode(id)
	require.NoError(t, err)
	return d.Node
}
