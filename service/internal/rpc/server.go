// Package rpc serves IDs and numbers over gRPC: the service of
// api/tickflake/v1/tickflake.proto, the standard health service without Watch, and reflection.
package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer      *issuer.Issuer
	config      *issuer.Config
	grpc        *grpc.Server
	draining    context.Context // ends when Shutdown begins
	drain       context.CancelFunc
	fingerprint uint64       // of the layout
	waiting     atomic.Int64 // handlers whose request is still to come; each adds 1 and takes it off
	streams     atomic.Int64 // of reflection; above the limit only while some are refused
}

// New returns a server.
func New(i *issuer.Issuer) *Server {
	s := &Server{issuer: i, config: i.Config(), fingerprint: wire.Fingerprint(i.Layout().String())}
	s.draining, s.drain = context.WithCancel(context.Background())
	transport := insecure.NewCredentials()
	if s.config.TLS != nil {
		transport = credentials.NewTLS(s.config.TLS)
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(handshake{transport, i.Anyone()}),
		grpc.StreamInterceptor(s.reflect),
		grpc.MaxRecvMsgSize(limit.Message),
		grpc.MaxHeaderListSize(limit.Headers),
		grpc.MaxConcurrentStreams(limit.Calls),
		// Requests are small. Else a client that sends much raises to 16 MiB what each of its
		// streams may have on its way, and a frame of one byte takes many times its size.
		grpc.StaticStreamWindowSize(limit.Window),
		grpc.StaticConnWindowSize(limit.Window),
		grpc.ConnectionTimeout(s.config.ReadTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: s.config.IdleTimeout, Time: limit.Ping, Timeout: limit.PingTimeout,
			MaxConnectionAge: s.config.MaxConnectionAge, MaxConnectionAgeGrace: s.config.ReadTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: limit.ClientPings, PermitWithoutStream: true,
		}),
	)
	s.register(tickflakev1.TickflakeService_ServiceDesc, methods...)
	s.register(grpc_health_v1.Health_ServiceDesc, health)
	reflection.Register(s.grpc)
	return s
}

// register registers these methods of a service, and no others of it.
func (s *Server) register(desc grpc.ServiceDesc, methods ...grpc.MethodDesc) {
	desc.Methods, desc.Streams = methods, nil
	desc.HandlerType = (*any)(nil) // methods has the handlers
	s.grpc.RegisterService(&desc, s)
}

// handshake gives each connection of the server a [connection].
type handshake struct {
	credentials.TransportCredentials
	anyone *issuer.Client // nil: a token is needed
}

// connection is the AuthInfo of a connection, by which its calls find it.
type connection struct {
	credentials.AuthInfo
	issuer.Peer
}

func (h handshake) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(nc)
	if err != nil {
		return nil, nil, err
	}
	c := &connection{AuthInfo: info, Peer: issuer.PeerOf(nc)}
	if h.anyone != nil {
		err = c.Known(h.anyone)
	}
	return secured, c, err
}

// Serve accepts connections until [Server.Shutdown], and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets the requests that run end, closes all connections, and
// returns when this is done. Streams end with UNAVAILABLE. When ctx ends it closes them at once, and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		go s.grpc.Stop() // GracefulStop returns soon after
		select {
		case <-done:
		case <-time.After(time.Second): // the connections of calls are closed
		}
		return ctx.Err()
	}
}

// messagesOf returns the messages of runs.
func (s *Server) messagesOf(runs []snowflake.Run) []*tickflakev1.Run {
	list := make([]*tickflakev1.Run, len(runs))
	for i, r := range runs {
		list[i] = &tickflakev1.Run{First: int64(r.First), Count: r.Count, Stride: r.Stride, UseWithin: durationpb.New(s.issuer.UseWithin(r))}
	}
	return list
}

// methods are those of the service.
var methods = []grpc.MethodDesc{
	method("Take", (*Server).take), method("Describe", (*Server).describe), method("Number", (*Server).number),
}

// countOf returns how many IDs or numbers a request asks for: 1, if it does not say.
func countOf(n *int64) int64 {
	if n == nil {
		return 1
	}
	return *n
}

// take returns IDs.
func (s *Server) take(ctx context.Context, c *issuer.Client, in *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, int64, error) {
	n := countOf(in.Count)
	runs, err := s.issuer.Runs(ctx, c, n, snowflake.ID(in.GetAfter()), nil)
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.TakeResponse{Runs: s.messagesOf(runs), LayoutFingerprint: s.fingerprint}, n, nil
}

// describe returns the layout, and the limits.
func (s *Server) describe(_ context.Context, c *issuer.Client, _ *tickflakev1.DescribeRequest) (*tickflakev1.DescribeResponse, int64, error) {
	config, layout := s.config, s.issuer.Layout()
	ids, numbers := s.issuer.Largest(c)
	return &tickflakev1.DescribeResponse{
		Layout:       layout.String(),
		Epoch:        timestamppb.New(layout.Epoch),
		Tick:         durationpb.New(layout.Tick),
		TimeBits:     int32(layout.TimeBits),
		NodeBits:     int32(layout.NodeBits),
		SequenceBits: int32(layout.SequenceBits),
		NodeLast:     layout.Order == snowflake.TimeSequenceNode,
		Node:         config.Generator.Node(),
		Strategy:     config.Strategy,
		UseWithin:    durationpb.New(config.UseWithin),
		MaxBatch:     ids,
		MaxNumbers:   numbers,
	}, 0, nil
}

// number returns numbers of a sequence.
func (s *Server) number(ctx context.Context, c *issuer.Client, in *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, int64, error) {
	n, err := s.issuer.Number(ctx, c, in.GetName(), countOf(in.Count))
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.NumberResponse{
		First: n.First, Last: n.Last, Count: n.Count, Stride: n.Stride, Mode: modeOf(n.Mode),
	}, n.Count, nil
}

func modeOf(m sequence.Mode) tickflakev1.Mode {
	if m == sequence.Ordered {
		return tickflakev1.Mode_MODE_ORDERED
	}
	return tickflakev1.Mode_MODE_SEGMENTED
}

// health says whether the issuer is ready: of the whole server, which is "", and of the service of IDs and numbers. It needs
// no token, and asks no store. The health service has no Watch here, by which strangers would hold streams.
var health = grpc.MethodDesc{MethodName: "Check", Handler: func(server any, _ context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	s, in, out := server.(*Server), new(grpc_health_v1.HealthCheckRequest), &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	if err := s.receive(receive, in); err != nil {
		return nil, err
	}
	if in.Service != "" && in.Service != tickflakev1.TickflakeService_ServiceDesc.ServiceName {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	if s.issuer.Ready() != nil {
		out.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return out, nil
}}

// request returns a call that has come whole, with its client, whose the connection is from now on.
func (s *Server) request(ctx context.Context, method string) *issuer.Request {
	p, _ := peer.FromContext(ctx)
	from, r := p.AuthInfo.(*connection), &issuer.Request{Protocol: issuer.GRPC, Method: method, Client: s.issuer.Anyone()}
	if r.Client == nil {
		r.Client, r.Err = s.issuer.Bearer(issuer.GRPC, metadata.ValueFromIncomingContext(ctx, "authorization"), false)
		if r.Err == nil {
			r.Err = from.Known(r.Client)
		}
	}
	if r.Err == nil {
		from.Asked()
	}
	return r
}

// method returns a method of the service: its request is received in time, its client is known, and
// the observer is told. serve returns how many IDs or numbers the client gets.
func method[In, Out any](name string, serve func(s *Server, ctx context.Context, c *issuer.Client, in *In) (out *Out, items int64, err error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(server any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		s, in := server.(*Server), new(In)
		if err := s.receive(receive, in); err != nil {
			return nil, err
		}
		var out *Out
		began, r := time.Now(), s.request(ctx, name)
		s.issuer.Serve(ctx, r, func(ctx context.Context) (items int64, err error) {
			out, items, err = serve(s, ctx, r.Client, in)
			return items, err
		})
		r.Duration = time.Since(began)
		return out, s.done(ctx, r)
	}}
}

// done tells the observer of a request that was answered, and returns its error as a status.
func (s *Server) done(ctx context.Context, r *issuer.Request) error {
	if r.Err == nil {
		s.issuer.Done(*r)
		return nil
	}
	if p, ok := peer.FromContext(ctx); ok {
		r.Remote = p.Addr.String()
	}
	s.issuer.Done(*r)
	return statusOf(r.Err)
}

// receive receives the request of a call. A client that never sends it would hold the call
// for ever, and a timer for each call would cost more than the ID: so calls have a timer only
// while many wait. A client sends its request with the headers, so that more wait only under attack.
func (s *Server) receive(receive func(any) error, request any) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) <= limit.Waiting {
		return receive(request)
	}
	return s.within(s.config.Timeout, func() error { return receive(request) })
}

// reflect runs the handler of a stream, which is one of reflection.
func (s *Server) reflect(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	defer s.streams.Add(-1)
	r := s.request(stream.Context(), "Reflection")
	if s.streams.Add(1) > limit.Streams && r.Err == nil {
		r.Err = errStreams
	}
	if r.Err != nil {
		return s.done(stream.Context(), r)
	}
	return s.within(s.config.ReadTimeout, func() error { return handler(server, stream) })
}

var (
	errNoMove  = issuer.Refuse(wire.Unavailable, "the call did not end in time: make a new one")
	errStreams = issuer.Later(errors.New("the server has its largest number of streams open"))
)

// within waits for a client. It fails when that takes too long, or when the server drains.
//
// grpc-go can neither receive nor send with a timeout, and a context that ends gives the
// client the status CANCELED, which says that the client itself gave up. So a goroutine waits
// for the client. If the handler leaves first, then grpc-go ends the call, and with it the goroutine.
func (s *Server) within(timeout time.Duration, work func() error) error {
	result := make(chan error, 1)
	go func() { result <- work() }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-s.draining.Done():
		return statusOf(issuer.ErrDraining)
	case <-timer.C:
		return statusOf(errNoMove)
	}
}

// statusOf returns the status of a request that was refused. To one whose client's deadline has
// passed, the client's library gives a status by itself.
func statusOf(err error) error {
	r := issuer.RefusalOf(err)
	st := status.New(codes.Code(r.Code.Words().GRPC), r.Error())
	if r.RetryAfter > 0 {
		if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)}); err == nil {
			st = detailed
		}
	}
	return st.Err()
}
