package rpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

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

// call is the context of a call, with its client. A type of its own costs one allocation
// for both.
type call struct {
	context.Context

	client  *issuer.Client
	refused error // why the client may not call, or nil
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call of a context that the server made.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// asked says that the call has a whole request. A stream of the client may have begun before the last call of
// another one on the connection.
func (c *call) asked() {
	if c.client != nil {
		peer := connectionOf(c)
		_ = peer.Known(c.client) // if there is no room for it, begin has refused the call
		peer.Asked()
	}
}

// begin makes the context of a call when its headers have arrived.
//
// It never returns an error: grpc-go would then keep the context of each refused call until
// its connection ends. The handlers refuse.
func (s *Server) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{Context: ctx}
	other := false // a method whose handler is not ours
	switch info.FullMethodName {
	case grpc_health_v1.Health_Watch_FullMethodName,
		grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName,
		grpc_reflection_v1alpha.ServerReflection_ServerReflectionInfo_FullMethodName:
		// A stream has timeouts of its own.
	default:
		if other = !strings.HasPrefix(info.FullMethodName, "/"+tickflakev1.TickflakeService_ServiceDesc.ServiceName+"/"); other {
			c.Context = s.issuer.Timeout(ctx) // grpc-go cancels ctx, and so the timer, when the call ends
		}
	}
	if c.client = s.issuer.Anyone(); c.client == nil {
		if c.client, c.refused = s.issuer.Bearer(issuer.GRPC, info.Header["authorization"], false); c.refused == nil {
			c.refused = connectionOf(ctx).Known(c.client)
		}
	}
	if other {
		c.asked()
	}
	return c, nil
}

// method returns a method of the service: its request is received in time, its client is known, and
// the observer is told. serve returns how many IDs or numbers the client gets.
func method[In, Out any](name string, serve func(s *Server, ctx context.Context, c *issuer.Client, in *In) (out *Out, items int64, err error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(server any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		s, c, in := server.(*Server), callOf(ctx), new(In)
		if err := s.receive(receive, in); err != nil {
			return nil, err
		}
		c.asked()
		var out *Out
		began, r := time.Now(), &issuer.Request{Protocol: issuer.GRPC, Method: name, Client: c.client, Err: c.refused}
		s.issuer.Serve(ctx, r, func(ctx context.Context) (items int64, err error) {
			out, items, err = serve(s, ctx, c.client, in)
			return items, err
		})
		return out, s.done(ctx, r, began)
	}}
}

// receive receives the request of a call. A client that never sends it would hold the call
// for ever, and a timer for each call would cost more than the ID: so calls have a timer only
// while many wait. A client sends its request with the headers, so that more wait only under attack. The count begins
// here, because grpc-go ends some calls between begin and the handler, and tells nobody.
func (s *Server) receive(receive func(any) error, request any) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) <= limit.Waiting {
		return receive(request)
	}
	return within(s.config.Timeout, nil, receive, request)
}

// done tells the observer of a request that was answered, and returns its error as a status.
func (s *Server) done(ctx context.Context, r *issuer.Request, began time.Time) error {
	r.Duration = time.Since(began)
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
