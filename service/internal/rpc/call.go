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

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

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
	if r.Err != nil || s.issuer.Logs() {
		if p, ok := peer.FromContext(ctx); ok {
			r.Remote = p.Addr.String()
		}
	}
	s.issuer.Done(*r)
	if r.Err != nil {
		return statusOf(r.Err)
	}
	return nil
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
