package client

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// fake is a server whose faults a test sets. It issues IDs as a server does: above all that
// it issued before, by its own clock, and one run per tick.
type fake struct {
	tickflakev1.UnimplementedTickflakeServer
	address string
	node    int64
	network *network

	mu        sync.Mutex
	layout    snowflake.Layout
	maxBatch  int64
	useWithin time.Duration
	skew      time.Duration                       // of its clock
	delay     time.Duration                       // of an answer, after the IDs were taken
	before    func(context.Context, string) error // what it does before it answers
	change    func(*tickflakev1.TakeResponse)     // of the answer
	free      uint64                              // the next slot: tick, sequence
	numbers   map[string]int64
	asked     []int64 // the counts of the requests for IDs
	calls     map[string]int
	tokens    []string

	server *grpc.Server
}

// layout is the default one with an epoch before the time at which synctest begins, 2000.
func layout() snowflake.Layout {
	l := snowflake.Default()
	l.Epoch = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}

// network connects clients with fakes, inside or outside a bubble of synctest.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	silent    chan struct{} // set by hush: connections made before it are dead
}

// hush makes the connections that exist lose all data, in both directions, without an error.
func (n *network) hush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.silent)
	n.silent = nil
}

// link is a connection that loses all data from the moment at which silent is closed.
type link struct {
	net.Conn
	silent, closed chan struct{}
	once           sync.Once
}

func (l *link) dead() bool {
	select {
	case <-l.silent:
		return true
	default:
		return false
	}
}

func (l *link) Write(p []byte) (int, error) {
	if l.dead() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.dead() {
		<-l.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	if n.silent == nil {
		n.silent = make(chan struct{})
	}
	silent := n.silent
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connection to %s refused", address)
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &link{Conn: conn, silent: silent, closed: make(chan struct{})}, nil
}

// start makes a server with a number.
func (n *network) start(t testing.TB, node int64) *fake {
	f := &fake{node: node, network: n, address: fmt.Sprintf("server-%d:9380", node), layout: layout(), maxBatch: 10_000, useWithin: time.Second,
		numbers: map[string]int64{}, calls: map[string]int{}}
	f.listen()
	t.Cleanup(f.stop)
	return f
}

func (f *fake) listen() {
	l := bufconn.Listen(1 << 16)
	f.network.mu.Lock()
	if f.network.listeners == nil {
		f.network.listeners = map[string]*bufconn.Listener{}
	}
	f.network.listeners[f.address] = l
	f.network.mu.Unlock()
	server := grpc.NewServer()
	tickflakev1.RegisterTickflakeServer(server, f)
	f.server = server
	go server.Serve(l)
}

// unlisten makes connections to the server fail.
func (f *fake) unlisten() {
	f.network.mu.Lock()
	delete(f.network.listeners, f.address)
	f.network.mu.Unlock()
}

// stop cuts all connections.
func (f *fake) stop() {
	f.unlisten()
	f.server.Stop()
}

// set changes the server.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// fail makes the server answer with an error, or as before if it is nil.
func (f *fake) fail(err error) {
	f.set(func() { f.before = func(context.Context, string) error { return err } })
}

// requests returns how often a method was called.
func (f *fake) requests(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *fake) enter(ctx context.Context, method string) error {
	f.mu.Lock()
	f.calls[method]++
	md, _ := metadata.FromIncomingContext(ctx)
	f.tokens = append(f.tokens, md.Get("authorization")...)
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, method)
}

func (f *fake) Describe(ctx context.Context, _ *tickflakev1.DescribeRequest) (*tickflakev1.DescribeResponse, error) {
	if err := f.enter(ctx, "Describe"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &tickflakev1.DescribeResponse{Layout: f.layout.String(), MaxBatch: f.maxBatch, UseWithin: durationpb.New(f.useWithin)}, nil
}

func (f *fake) Take(ctx context.Context, r *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	if err := f.enter(ctx, "Take"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.asked = append(f.asked, r.GetCount())
	response := &tickflakev1.TakeResponse{}
	bits := f.layout.SequenceBits
	now := uint64(time.Now().Add(f.skew).Sub(f.layout.Epoch)/f.layout.Tick) << bits
	f.free = max(f.free, now)
	for left := uint64(r.GetCount()); left > 0; {
		n := min(left, (f.free|(1<<bits-1))+1-f.free)
		id, stride := int64(f.free>>bits<<(bits+f.layout.NodeBits)|uint64(f.node)<<bits|f.free&(1<<bits-1)), int64(1)
		if f.layout.Order == snowflake.TimeSequenceNode {
			id, stride = int64(f.free<<f.layout.NodeBits|uint64(f.node)), 1<<f.layout.NodeBits
		}
		response.Runs = append(response.Runs, &tickflakev1.Run{First: id, Count: int64(n), Stride: stride, UseWithin: durationpb.New(f.useWithin)})
		f.free += n
		left -= n
	}
	if f.change != nil {
		f.change(response)
	}
	delay := f.delay
	f.mu.Unlock()
	return response, wait(ctx, delay)
}

func (f *fake) Number(ctx context.Context, r *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, error) {
	if err := f.enter(ctx, "Number"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.numbers[r.GetName()] + 1
	f.numbers[r.GetName()] += r.GetCount()
	return &tickflakev1.NumberResponse{First: 2*first - 1, Last: 2*(first+r.GetCount()-1) - 1, Count: r.GetCount(), Stride: 2, Mode: tickflakev1.Mode_MODE_ORDERED}, nil
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-time.After(d):
		return nil
	}
}

// hang keeps requests for IDs waiting until they are canceled.
func hang(ctx context.Context, method string) error {
	if method != "Take" {
		return nil
	}
	return wait(ctx, math.MaxInt64)
}

// busy is the rejection of a server that names a delay.
func busy(after time.Duration) error {
	s, _ := status.New(codes.ResourceExhausted, "too fast").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	return s.Err()
}

// open connects a client with the servers.
func open(t testing.TB, servers []*fake, options ...Option) *Client {
	c, err := tryOpen(t.Context(), servers, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func tryOpen(ctx context.Context, servers []*fake, options ...Option) (*Client, error) {
	var addresses []string
	for _, s := range servers {
		addresses = append(addresses, s.address)
	}
	return Open(ctx, addresses, append([]Option{WithLogger(slog.New(slog.DiscardHandler)), withDialer(servers[0].network)}, options...)...)
}

// withDialer makes connections through a network, without looking a name up.
func withDialer(n *network) Option {
	return func(c *config) {
		c.dial = []grpc.DialOption{grpc.WithContextDialer(n.dial)}
		c.target = "passthrough:///"
	}
}

// prefer makes a server the first that is asked.
func prefer(c *Client, index int) {
	for k := range kinds {
		c.prefer(k, c.servers[index])
	}
}
