package rpc

import (
	"context"
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
}

// healthInterval is how often a watch looks at the readiness.
const healthInterval = 250 * time.Millisecond

var healthServices = []string{"", tickflakev1.Tickflake_ServiceDesc.ServiceName}

func (h *health) status(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if service != healthServices[0] && service != healthServices[1] {
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
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for sent := grpc_health_v1.HealthCheckResponse_UNKNOWN; ; {
		if now := h.status(in.GetService()); now != sent {
			sent = now
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-draining:
		}
		if sent != grpc_health_v1.HealthCheckResponse_SERVING {
			return statusOf(ctx, errDraining)
		}
	}
}
