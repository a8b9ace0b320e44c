package rpc

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

type idStream = grpc.BidiStreamingClient[tickflakev1.StreamRequest, tickflakev1.StreamResponse]

func openStream(t testing.TB, conn *grpc.ClientConn) idStream {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := tickflakev1.NewTickflakeClient(conn).Stream(ctx)
	require.NoError(t, err)
	return stream
}

// receive returns the IDs of one request.
func receive(t testing.TB, stream idStream, credit int64) []snowflake.ID {
	var ids []snowflake.ID
	for int64(len(ids)) < credit {
		out, err := stream.Recv()
		require.NoError(t, err)
		ids = append(ids, expand(t, out.Runs)...)
	}
	require.Len(t, ids, int(credit), "the answer ends with a response")
	return ids
}

func TestStreamAnswersInOrderWithExactlyTheCredit(t *testing.T) {
	t.Parallel()
	s, conn := serve(t, config(t))
	stream := openStream(t, conn)
	credits := []int64{1, 5000, 2, 10_000, 3, 1}
	for _, credit := range credits {
		require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: credit}))
	}
	var all []snowflake.ID
	for _, credit := range credits {
		all = append(all, receive(t, stream, credit)...)
	}
	require.IsIncreasing(t, all)
	require.NoError(t, stream.CloseSend())
	_, err := stream.Recv()
	require.ErrorIs(t, err, io.EOF, "more than the credit")
	require.EqualValues(t, len(all), s.observer.Items())
}

func TestStreamEndsWithTheStatusOfTheRequestThatFails(t *testing.T) {
	t.Parallel()
	_, conn := serve(t, config(t))
	for _, credit := range []int64{0, -1, 10_001, 1 << 62} {
		stream := openStream(t, conn)
		require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 7}))
		require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: credit}))
		receive(t, stream, 7)
		_, err := stream.Recv()
		require.Equal(t, codes.InvalidArgument, status.Code(err), credit)
	}
	c, _ := still(t, strategies.Reject())
	_, conn = serve(t, c)
	stream := openStream(t, conn)
	require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 4}))
	require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 1}))
	receive(t, stream, 4)
	_, err := stream.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.Equal(t, time.Millisecond, retryAfter(t, err))
}

// await waits until so many streams of IDs are open.
func (s *Server) await(t testing.TB, n int64) {
	require.Eventually(t, func() bool { return s.streams.Load() == n }, 30*time.Second, time.Millisecond)
}

func TestAStreamWhoseClientCancelsEnds(t *testing.T) {
	t.Parallel()
	c, clock := still(t, strategies.Wait())
	s, conn := serve(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := tickflakev1.NewTickflakeClient(conn).Stream(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 5}))
	require.NoError(t, clock.BlockUntil(t.Context(), 1))
	cancel()
	s.await(t, 0)
}

func TestStreamsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.MaxStreams = 2
	s, conn := serve(t, c)
	for range 2 {
		stream := openStream(t, conn)
		require.NoError(t, stream.Send(&tickflakev1.StreamRequest{Credit: 1}))
		receive(t, stream, 1)
	}
	s.await(t, 2)
	_, err := openStream(t, conn).Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	require.Contains(t, err.Error(), "largest number of streams open, 2")

	// Streams that need no token are limited for each connection: none keeps those of another out.
	watch := func(conn *grpc.ClientConn) error {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		stream, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	for range maxOfKind {
		require.NoError(t, watch(conn))
	}
	require.Equal(t, codes.Unavailable, status.Code(watch(conn)))
	require.NoError(t, watch(dial(t, strings.TrimPrefix(conn.Target(), "passthrough:///"))))
}

func TestLargeMessagesAndHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s, conn := serve(t, config(t))
	client := tickflakev1.NewTickflakeClient(conn)
	_, err := client.Number(t.Context(), &tickflakev1.NumberRequest{Name: strings.Repeat("a", maxMessage)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.Empty(t, status.Convert(err).Details(), "it is of no use to repeat it")
	ctx := withToken(t.Context(), strings.Repeat("a", maxHeaders))
	_, err = client.Take(ctx, &tickflakev1.TakeRequest{})
	require.Error(t, err)
	_, err = client.Take(t.Context(), &tickflakev1.TakeRequest{})
	require.NoError(t, err)
	require.Zero(t, s.waiting.Load())
}

// Calls without a request have no timer until there are many of them.
func TestCallsWhoseRequestNeverComesEnd(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Timeout = 20 * time.Millisecond
	s, conn := serve(t, c)
	begin := func() (grpc.ClientStream, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, tickflakev1.Tickflake_Take_FullMethodName)
		require.NoError(t, err)
		return stream, cancel
	}
	_, cancel := begin()
	require.Eventually(t, func() bool { return s.waiting.Load() == 1 }, 30*time.Second, time.Millisecond)
	cancel()
	require.Eventually(t, func() bool { return s.waiting.Load() == 0 }, 30*time.Second, time.Millisecond)

	s.waiting.Add(maxWaiting)
	stream, cancel := begin()
	defer cancel()
	require.Equal(t, codes.DeadlineExceeded, status.Code(stream.RecvMsg(&tickflakev1.TakeResponse{})))
	require.EqualValues(t, maxWaiting, s.waiting.Load())
	_, err := tickflakev1.NewTickflakeClient(conn).Take(t.Context(), &tickflakev1.TakeRequest{})
	require.NoError(t, err)
}

// grpc-go ends some calls before their handler begins. They are not counted as waiting.
func TestCallsWithoutAHandlerDoNotWait(t *testing.T) {
	t.Parallel()
	s, conn := serve(t, config(t))
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	for name, value := range map[string]string{"grpc-encoding": "none", "grpc-timeout": "1n"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+strings.TrimPrefix(conn.Target(), "passthrough:///")+tickflakev1.Tickflake_Take_FullMethodName, http.NoBody)
		require.NoError(t, err)
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, name: {value}}
		answer, err := transport.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.NotEqual(t, "0", answer.Header.Get("Grpc-Status"), name)
		require.NotEmpty(t, answer.Header.Get("Grpc-Status"), name)
	}
	require.Zero(t, s.waiting.Load())
}

func TestMessagesAreLinkedOnce(t *testing.T) {
	t.Parallel()
	var m messages
	for _, n := range []int{1, 3, 2, 5} {
		runs := make([]issuer.Run, n)
		for i := range runs {
			runs[i] = issuer.Run{Run: snowflake.Run{First: snowflake.ID(i), Count: int64(n), Stride: 1}, UseWithin: time.Duration(i)*1500*time.Millisecond + 1}
		}
		for i, got := range m.of(runs) {
			require.EqualValues(t, i, got.First)
			require.EqualValues(t, n, got.Count)
			require.Equal(t, runs[i].UseWithin, got.UseWithin.AsDuration())
		}
	}
	require.Len(t, m.list, 5)
}
