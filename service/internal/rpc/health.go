package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
)

// checks is the standard health service: SERVING while the issuer is ready. It needs no token
// and no store. The service "" is the whole server.
type checks struct {
	*health.Server
	server *Server

	mu   sync.Mutex
	last grpc_health_v1.HealthCheckResponse_ServingStatus // that was set: to set one wakes all watches
}

// healthInterval is how often the server looks at its readiness, for all watches.
const healthInterval = 250 * time.Millisecond

// follow looks at the readiness until stop is closed.
func (c *checks) follow(stop <-chan struct{}) {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		c.look()
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

func (c *checks) look() {
	c.mu.Lock() // also so that none sets a status that is older
	defer c.mu.Unlock()
	status := grpc_health_v1.HealthCheckResponse_SERVING
	if c.server.draining.Err() != nil || c.server.issuer.Ready() != nil {
		status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	if status == c.last {
		return
	}
	c.last = status
	for _, service := range []string{"", tickflakev1.Tickflake_ServiceDesc.ServiceName} {
		c.SetServingStatus(service, status)
	}
}

// Check returns the status of now.
func (c *checks) Check(ctx context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	c.look()
	return c.Server.Check(ctx, in)
}

// List returns the status of all services.
func (c *checks) List(ctx context.Context, in *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	c.look()
	return c.Server.List(ctx, in)
}

// Watch sends the status, and each change of it, until the client or the server ends.
func (c *checks) Watch(in *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(c.server.draining, cancel)()
	w := &watch{ServerStreamingServer: stream, ctx: ctx}
	err := c.Server.Watch(in, w)
	switch {
	case w.err != nil:
		return w.err
	case c.server.draining.Err() != nil && stream.Context().Err() == nil:
		_ = stream.Send(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING})
		return statusOf(ctx, errDraining)
	}
	return err
}

// watch is a stream that ends when the server drains, and keeps the error of a send.
type watch struct {
	grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]
	ctx context.Context
	err error
}

func (w *watch) Context() context.Context { return w.ctx }

func (w *watch) Send(m *grpc_health_v1.HealthCheckResponse) error {
	w.err = w.ServerStreamingServer.Send(m)
	return w.err
}
