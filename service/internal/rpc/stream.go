package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// Stream returns IDs under credit. It receives a request only when the one before is
// answered, so that the flow control of HTTP/2 bounds those that wait.
func (s *Server) Stream(stream grpc.BidiStreamingServer[tickflakev1.StreamRequest, tickflakev1.StreamResponse]) error {
	ctx := stream.Context()
	c := callOf(ctx)
	var (
		in   tickflakev1.StreamRequest
		runs []snowflake.Run
	)
	for {
		if err := stream.RecvMsg(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		began, bounded := time.Now(), s.issuer.Timeout(ctx)
		var err error
		runs, err = s.issuer.Runs(bounded, c.client, in.Credit, snowflake.ID(in.After), runs[:0])
		if err = s.done(bounded, c, "Stream", began, in.Credit, err); err != nil {
			return err
		}
		if err := stream.SendMsg(&tickflakev1.StreamResponse{Runs: s.messagesOf(runs)}); err != nil {
			return err
		}
	}
}

// maxOther is how many streams of health and reflection a connection may have: a program needs one of
// each. They may need no token, and some last as long as the connection does.
const maxOther = 4

// enter counts a stream of the server or of a connection, unless there are too many.
func enter(open *atomic.Int64, most int, whose string) error {
	if open.Add(1) <= int64(most) {
		return nil
	}
	open.Add(-1)
	return issuer.Later(fmt.Errorf("%s has its largest number of streams open, %d", whose, most))
}

var errNoMove = issuer.Refuse(issuer.Unavailable, "the call did not move in time: make a new one")

// intercept runs the handler of a stream.
func (s *Server) intercept(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	began, c := time.Now(), callOf(ss.Context())
	open, most, whose, method := &s.streams, s.config.MaxStreams, "the server", "Stream"
	if info.FullMethod != tickflakev1.TickflakeService_Stream_FullMethodName {
		open, most, whose, method = &connectionOf(ss.Context()).open, maxOther, "the connection", "Reflection"
		if info.FullMethod == grpc_health_v1.Health_Watch_FullMethodName {
			method = "Watch"
		}
	}
	err := c.refused
	if err == nil || method == "Watch" {
		err = enter(open, most, whose)
	}
	if err != nil {
		return s.done(s.issuer.Timeout(ss.Context()), c, method, began, 0, err)
	}
	defer open.Add(-1)
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
