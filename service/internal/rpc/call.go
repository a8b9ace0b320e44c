package rpc

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
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

// asked says that the call has a whole request.
func (c *call) asked() {
	if c.client != nil {
		connectionOf(c).Asked()
	}
}

// maxWaiting is how many calls may wait for their request without a timer: 10 MB of memory.
// A client sends its request with the headers, so that more wait only under attack.
const maxWaiting = 1024

// begin makes the context of a call when its headers have arrived.
//
// It never returns an error: grpc-go would then keep the context of each refused call until
// its connection ends. The handlers refuse.
func (s *Server) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{Context: ctx}
	health := false
	switch info.FullMethodName {
	case tickflakev1.Tickflake_Stream_FullMethodName, grpc_health_v1.Health_Watch_FullMethodName,
		grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName,
		grpc_reflection_v1alpha.ServerReflection_ServerReflectionInfo_FullMethodName:
		// A stream has timeouts of its own.
	default:
		// The other methods of this service bound the wait for their request, see describe.
		// grpc-go cancels ctx, and so the timer, when the call ends.
		if health = !s.unary[info.FullMethodName]; health {
			c.Context = s.issuer.Timeout(ctx)
		}
	}
	if c.client = s.issuer.Anyone(); c.client == nil {
		if c.client, c.refused = s.issuer.Bearer(info.Header["authorization"]); c.refused == nil {
			connectionOf(ctx).Known()
		}
	}
	if health {
		c.asked() // its handler is not ours
	}
	return c, nil
}

// describe returns the description of the service with handlers that bound the wait for the
// request.
func (s *Server) describe() *grpc.ServiceDesc {
	desc := tickflakev1.Tickflake_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	s.unary = make(map[string]bool)
	for i := range desc.Methods {
		m := &desc.Methods[i]
		s.unary["/"+desc.ServiceName+"/"+m.MethodName] = true
		handle := m.Handler
		m.Handler = func(server any, ctx context.Context, receive func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return handle(server, ctx, func(request any) error {
				err := s.receive(receive, request)
				if err == nil {
					callOf(ctx).asked()
				}
				return err
			}, intercept)
		}
	}
	return &desc
}

// receive receives the request of a call. A client that never sends it would hold the call
// for ever, and a timer for each call would cost more than the ID: so calls have a timer only
// while many wait. The count begins here, because grpc-go ends some calls between begin and
// the handler, and tells nobody.
func (s *Server) receive(receive func(any) error, request any) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) <= maxWaiting {
		return receive(request)
	}
	// As in a stream, a goroutine waits for the client. It ends when the handler has left.
	received := make(chan error, 1)
	go func() { received <- receive(request) }()
	timer := time.NewTimer(s.config.Timeout)
	defer timer.Stop()
	select {
	case err := <-received:
		return err
	case <-timer.C:
		return errNoRequest
	}
}

var errNoRequest = status.Error(codes.DeadlineExceeded, "the request did not come in time")

// request is one request of a call, for the observer.
type request struct {
	ctx   context.Context
	call  *call
	began time.Time
}

// request begins a request, and refuses it if its client is not known.
func (s *Server) request(ctx context.Context) (request, error) {
	r := request{ctx: ctx, call: callOf(ctx), began: time.Now()}
	return r, r.call.refused
}

// bounded begins a request that may have to wait, under the timeout of a request. Its done
// must be called.
func (s *Server) bounded(ctx context.Context) (request, error) {
	return s.request(s.issuer.Timeout(ctx))
}

// done tells the observer of a request that was answered, and returns err as a status.
func (s *Server) done(r request, method string, items int64, err error) error {
	seen := observe.Request{Protocol: observe.GRPC, Method: method, Items: items, Duration: time.Since(r.began), Err: err}
	if r.call.client != nil {
		seen.Client = r.call.client.Name
	}
	if err != nil || s.observer.Logs() {
		if p, ok := peer.FromContext(r.ctx); ok {
			seen.Remote = p.Addr.String()
		}
	}
	s.observer.Done(seen)
	if err != nil {
		err = statusOf(r.ctx, err)
	}
	if t, ok := r.ctx.(*issuer.Timeout); ok && t.Started() {
		t.Cancel()
	}
	return err
}
