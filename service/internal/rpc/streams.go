package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

var (
	errNoMove  = issuer.Refuse(wire.Unavailable, "the call did not move in time: make a new one")
	errStreams = issuer.Later(errors.New("the connection has its largest number of streams open"))
)

// intercept runs the handler of a stream, which is one of health or reflection.
func (s *Server) intercept(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c, method := callOf(ss.Context()), "Reflection"
	if info.FullMethod == grpc_health_v1.Health_Watch_FullMethodName { // which needs no token
		c.refused, method = nil, "Watch"
	}
	open := &connectionOf(ss.Context()).streams
	defer open.Add(-1)
	if open.Add(1) > limit.StrangerStreams && c.refused == nil {
		c.refused = errStreams
	}
	if c.refused != nil {
		return s.done(ss.Context(), &issuer.Request{Protocol: issuer.GRPC, Method: method, Client: c.client, Err: c.refused}, time.Now())
	}
	return handler(srv, &stream{ss, s})
}

// stream bounds how long a handler waits for the client.
type stream struct {
	grpc.ServerStream
	server *Server
}

// RecvMsg receives a request. It fails when the server drains, or when no request comes
// within the idle timeout.
func (st *stream) RecvMsg(m any) error {
	draining := st.server.draining
	if draining.Err() != nil {
		return statusOf(issuer.ErrDraining)
	}
	err := within(st.server.config.IdleTimeout, draining.Done(), st.ServerStream.RecvMsg, m)
	if err == nil {
		callOf(st.Context()).asked()
	}
	return err
}

// SendMsg sends an answer. It fails when the client does not read it within the write
// timeout. Until then the stream holds the 64 KiB that grpc-go takes before it waits for the
// client, and no more.
func (st *stream) SendMsg(m any) error {
	return within(st.server.config.ReadTimeout, nil, st.ServerStream.SendMsg, m)
}

// within receives or sends a message. It fails when that takes too long, or when the server drains.
//
// grpc-go can neither receive nor send with a timeout, and a context that ends gives the
// client the status CANCELED, which says that the client itself gave up. So a goroutine waits
// for the client. If the handler leaves first, then grpc-go ends the stream, and with it the goroutine.
func within(timeout time.Duration, draining <-chan struct{}, work func(any) error, message any) error {
	result := make(chan error, 1)
	go func() { result <- work(message) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-draining:
		return statusOf(issuer.ErrDraining)
	case <-timer.C:
		return statusOf(errNoMove)
	}
}

// checks is the standard health service, of the whole server, which is "", and of the service of IDs and numbers:
// SERVING while the issuer is ready. It needs no token, and asks no store.
type checks struct {
	grpc_health_v1.UnimplementedHealthServer
	*Server
}

// healthInterval is how often a watch looks at the readiness.
const healthInterval = 500 * time.Millisecond

func (c checks) status(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	switch {
	case service != "" && service != tickflakev1.TickflakeService_ServiceDesc.ServiceName:
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	case c.issuer.Ready() != nil:
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

// Check returns the status of now.
func (c checks) Check(_ context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	now := c.status(in.Service)
	if now == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: now}, nil
}

// Watch sends the status of now, and then each change, until the server drains.
func (c checks) Watch(in *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	last := grpc_health_v1.HealthCheckResponse_ServingStatus(-1)
	for {
		if now := c.status(in.Service); now != last {
			last = now
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
		}
		if c.draining.Err() != nil {
			return statusOf(issuer.ErrDraining)
		}
		select {
		case <-tick.C:
		case <-c.draining.Done():
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
