package rpc

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
)

// health is the standard health service: SERVING while the issuer is ready. It needs no token
// and no store. The service "" is the whole server.
type health struct {
	grpc_health_v1.UnimplementedHealthServer

	server *Server
	// seen is the readiness that the watches send. It is never nil once New has returned; only
	// look replaces it, in one goroutine.
	seen atomic.Pointer[readiness]
}

// readiness is the status of the server at a time.
type readiness struct {
	status  grpc_health_v1.HealthCheckResponse_ServingStatus
	changed chan struct{} // closed when another one has replaced it
}

// healthInterval is how often the server looks at its readiness, for all watches.
const healthInterval = 250 * time.Millisecond

// follow looks at the readiness until stop is closed.
func (h *health) follow(stop <-chan struct{}) {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		h.look()
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

func (h *health) look() {
	before, now := h.seen.Load(), h.status("")
	if before != nil && before.status == now {
		return
	}
	h.seen.Store(&readiness{now, make(chan struct{})})
	if before != nil {
		close(before.changed)
	}
}

var healthServices = []string{"", tickflakev1.Tickflake_ServiceDesc.ServiceName}

func (h *health) status(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if !slices.Contains(healthServices, service) {
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	}
	select {
	case <-h.server.streams.draining:
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	default:
	}
	if h.server.issuer.Ready() != nil {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

// Check returns the status of now.
func (h *health) Check(_ context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	now := h.status(in.GetService())
	if now == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Errorf(codes.NotFound, "there is no service of this name: ask for %q, or for the empty name", healthServices[1])
	}
	return &grpc_health_v1.HealthCheckResponse{Status: now}, nil
}

// List returns the status of all services.
func (h *health) List(context.Context, *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	all := make(map[string]*grpc_health_v1.HealthCheckResponse)
	for _, service := range healthServices {
		all[service] = &grpc_health_v1.HealthCheckResponse{Status: h.status(service)}
	}
	return &grpc_health_v1.HealthListResponse{Statuses: all}, nil
}

// Watch sends the status, and each change of it, until the client or the server ends.
func (h *health) Watch(in *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	ctx, draining := stream.Context(), h.server.streams.draining
	for sent := grpc_health_v1.HealthCheckResponse_UNKNOWN; ; {
		seen := h.seen.Load()
		now := seen.status
		if !slices.Contains(healthServices, in.GetService()) {
			now = grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if now != sent {
			sent = now
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
		}
		select {
		case <-seen.changed:
			continue
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-draining:
		}
		if sent == grpc_health_v1.HealthCheckResponse_SERVING {
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}); err != nil {
				return err
			}
		}
		return statusOf(ctx, errDraining)
	}
}
