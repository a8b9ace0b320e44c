package rpc

import (
	"context"
	"crypto/sha256"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/strategies"
)

// retryAfter returns the delay in the details of a status.
func retryAfter(t testing.TB, err error) time.Duration {
	details := status.Convert(err).Details()
	require.Len(t, details, 1)
	return details[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
}

// The client's own library reports a deadline by itself. So the handler is called as grpc-go
// calls it.
func TestTheClientsDeadlineIsDeadlineExceeded(t *testing.T) {
	t.Parallel()
	c, _ := still(t, strategies.Wait())
	s, _ := serve(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Take(&call{Context: ctx, client: s.issuer.Anyone()}, &tickflakev1.TakeRequest{Count: 5})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), err)
	require.Empty(t, status.Convert(err).Details())
}

func TestTheTimerOfARequestEndsWithIt(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, config(t))
	r, err := s.bounded(&call{Context: t.Context(), client: s.issuer.Anyone()})
	require.NoError(t, err)
	r.ctx.Done() // starts it
	require.NoError(t, r.ctx.Err())
	require.NoError(t, s.done(r, "Take", 1, nil))
	require.ErrorIs(t, r.ctx.Err(), context.Canceled)
}

func TestAClientThatCancelsFreesTheCall(t *testing.T) {
	t.Parallel()
	c, clock := still(t, strategies.Wait())
	s, conn := serve(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := tickflakev1.NewTickflakeClient(conn).Take(ctx, &tickflakev1.TakeRequest{Count: 5})
		failed <- err
	}()
	require.NoError(t, clock.BlockUntil(t.Context(), 1))
	cancel()
	require.Equal(t, codes.Canceled, status.Code(<-failed))
	require.NoError(t, s.Shutdown(t.Context())) // waits for the handler, for which no time passes
}

func TestEveryMethodButHealthAsksForTheToken(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Clients = []issuer.Credential{{Name: "shop", Token: sha256.Sum256([]byte("s3cret")), Rate: 0.001, Burst: 10}}
	s, conn := serve(t, c)
	for service, info := range s.grpc.GetServiceInfo() {
		for _, method := range info.Methods {
			for name, md := range map[string]metadata.MD{
				"none":      nil,
				"wrong":     metadata.Pairs("authorization", "Bearer secret"),
				"no scheme": metadata.Pairs("authorization", "s3cret"),
				"two":       metadata.Pairs("authorization", "Bearer s3cret", "authorization", "Bearer s3cret"),
				"basic":     metadata.Pairs("authorization", "Basic s3cret"),
			} {
				ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(t.Context(), md))
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+service+"/"+method.Name)
				require.NoError(t, err)
				if err := stream.SendMsg(&tickflakev1.DescribeRequest{}); err != io.EOF { // the server has refused the call already
					require.NoError(t, err)
				}
				require.NoError(t, stream.CloseSend())
				err = stream.RecvMsg(&tickflakev1.DescribeResponse{})
				cancel()
				if service == grpc_health_v1.Health_ServiceDesc.ServiceName {
					require.NotEqual(t, codes.Unauthenticated, status.Code(err), "%s %s", method.Name, name)
					continue
				}
				require.Equal(t, codes.Unauthenticated, status.Code(err), "%s %s", method.Name, name)
				require.NotContains(t, err.Error(), "cret")
			}
		}
	}
	client := tickflakev1.NewTickflakeClient(conn)
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", scheme+" s3cret")
		_, err := client.Take(ctx, &tickflakev1.TakeRequest{})
		require.NoError(t, err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer s3cret")
	_, err := client.Number(ctx, &tickflakev1.NumberRequest{Name: "orders"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = client.Take(ctx, &tickflakev1.TakeRequest{Count: 10})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "3 IDs of 10 are spent: %v", err)
	require.Positive(t, retryAfter(t, err))
	stream, err := client.Stream(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 10}))
	_, err = stream.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "a credit spends the rate as well: %v", err)
	require.Positive(t, retryAfter(t, err))
	reflected, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.Contains(t, services(t, reflected), "tickflake.v1.Tickflake")
}

// services returns the names that the reflection service lists.
func services(t testing.TB, stream grpc_reflection_v1.ServerReflection_ServerReflectionInfoClient) []string {
	require.NoError(t, stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}))
	got, err := stream.Recv()
	require.NoError(t, err)
	var names []string
	for _, s := range got.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	return names
}
