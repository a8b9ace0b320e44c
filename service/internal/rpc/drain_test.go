package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/strategies"
)

func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestShutdownEndsStreamsAfterTheRequestInProgress(t *testing.T) {
	t.Parallel()
	c, clock := still(t, strategies.Wait())
	s, conn := serve(t, c)
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	got, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, got.Status)
	reflected, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.Contains(t, services(t, reflected), "tickflake.v1.Tickflake")
	idle := openStream(t, conn)
	require.NoError(t, idle.Send(&tickflakev1.StreamRequest{Credit: 4}))
	receive(t, idle, 4)
	busy := openStream(t, conn)
	require.NoError(t, busy.Send(&tickflakev1.StreamRequest{Credit: 3}))
	require.NoError(t, busy.Send(&tickflakev1.StreamRequest{Credit: 1}))
	require.NoError(t, clock.BlockUntil(t.Context(), 1))
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	_, err = idle.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	require.Positive(t, retryAfter(t, err))
	got, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, got.Status)
	_, err = watch.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	_, err = reflected.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned with a request in progress: %v", err)
	default:
	}
	clock.Advance(time.Millisecond)
	receive(t, busy, 3)
	_, err = busy.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "the request that waits is not answered: %v", err)
	require.NoError(t, <-done)
}

func TestHealthFollowsTheReadiness(t *testing.T) {
	t.Parallel()
	s, conn := serve(t, config(t))
	client := grpc_health_v1.NewHealthClient(conn)
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "tickflake.v1.Tickflake"})
	require.NoError(t, err)
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
		grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING,
	} {
		got, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, want, got.Status)
		for _, service := range []string{"", "tickflake.v1.Tickflake"} {
			got, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
			require.NoError(t, err)
			require.Equal(t, want, got.Status)
		}
		all, err := client.List(t.Context(), &grpc_health_v1.HealthListRequest{})
		require.NoError(t, err)
		require.Len(t, all.Statuses, 2)
		require.Equal(t, want, all.Statuses[""].Status)
		s.issuer.Drain()
	}
	_, err = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"})
	require.Equal(t, codes.NotFound, status.Code(err))
	other, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"})
	require.NoError(t, err)
	got, err := other.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN, got.Status)
}
