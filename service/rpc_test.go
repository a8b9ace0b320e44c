package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// four is a generator of four IDs in a second, whose callers wait for the next.
func four(t *testing.T, strategy strategies.Strategy) *generator.Generator {
	layout, err := snowflake.ParseLayout("time=41,node=4,sequence=2,tick=1s,epoch=2025-01-01")
	require.NoError(t, err)
	return newGenerator(t, generator.WithLayout(layout), generator.WithStrategy(strategy))
}

// ends checks how a stream ends.
func ends(t *testing.T, want codes.Code, receive func() error, about ...any) {
	t.Helper()
	var err error
	for err == nil {
		err = receive()
	}
	require.Equal(t, want, status.Code(err), append([]any{err}, about...)...)
}

func ended[M any](stream interface{ Recv() (M, error) }) func() error {
	return func() error { _, err := stream.Recv(); return err }
}

// answered returns a function that calls a method, and returns its answer as JSON.
func answered[In any, Out proto.Message](method func(context.Context, In, ...grpc.CallOption) (Out, error), in In) func(t *testing.T) string {
	return func(t *testing.T) string {
		out, err := method(t.Context(), in)
		require.NoError(t, err)
		text, err := protojson.Marshal(out)
		require.NoError(t, err)
		var compact bytes.Buffer // protojson adds white space at random
		require.NoError(t, json.Compact(&compact, text))
		return compact.String()
	}
}

// What each call answers: N stands for a number.
func TestAnswersOfRPC(t *testing.T) {
	t.Parallel()
	layout, err := snowflake.ParseLayout("time=40,sequence=12,node=8,tick=10ms,epoch=2020-01-01")
	require.NoError(t, err)
	layout.Parts = []snowflake.Part{{Name: "rack", Bits: 4}, {Name: "host", Bits: 4}}
	r := start(t, listen, func(c *service.Config) {
		c.Generator, c.Strategy, c.UseWithin = newGenerator(t, generator.WithLayout(layout)), "wait 1s", 1500*time.Millisecond
	})
	for name, d := range map[string]sequence.Definition{
		"bills": {Period: sequence.Yearly}, "tickets": {Mode: sequence.Ordered, Start: 100, Stride: sequence.Every(10, 3), Max: 10_000},
	} {
		require.NoError(t, sequence.Create(t.Context(), r.store, name, d))
	}
	id, err := layout.Min(layout.Epoch.Add(time.Hour))
	require.NoError(t, err)
	c := tickflakev1.NewTickflakeServiceClient(r.rpc())
	for _, row := range []struct {
		call func(*testing.T) string
		want string
	}{
		{answered(c.Describe, &tickflakev1.DescribeRequest{}), `{"layout":".*","epoch":"2020-01-01T00:00:00Z","tick":"0.010s","timeBits":40,"nodeBits":8,"sequenceBits":12,"nodeLast":true,"node":"1","strategy":"wait 1s","useWithin":"1.500s","maxBatch":"10000","maxNumbers":"1000000"}`},
		{answered(c.Take, &tickflakev1.TakeRequest{}), `{"runs":.{"first":"N","count":"1","stride":"256","useWithin":"1.500s"}.,"layoutFingerprint":"` + fmt.Sprint(wire.Fingerprint(layout.String())) + `"}`},
		{answered(c.Decode, &tickflakev1.DecodeRequest{Id: int64(id) + 0x312}), `{"id":"N","time":"2020-01-01T01:00:00Z","node":"18","parts":{"host":"2","rack":"1"},"sequence":"3"}`},
		{answered(c.Number, &tickflakev1.NumberRequest{Name: "orders"}), `{"first":"1","last":"1","count":"1","stride":"1","mode":"MODE_SEGMENTED"}`},
		{answered(c.Number, &tickflakev1.NumberRequest{Name: "tickets", Count: new(int64(2))}), `{"first":"103","last":"113","count":"2","stride":"10","mode":"MODE_ORDERED"}`},
		{answered(c.GetSequence, &tickflakev1.GetSequenceRequest{Name: "tickets"}), `{"sequence":{"name":"tickets","mode":"MODE_ORDERED","start":"100","stride":"10","offset":"3","max":"10000","next":"123","last":"113","left":"988"}}`},
		{answered(c.GetSequence, &tickflakev1.GetSequenceRequest{Name: "bills"}), `{"sequence":{"name":"bills","mode":"MODE_SEGMENTED","start":"1","stride":"1","max":"N","period":"yearly"}}`},
	} {
		assert.Regexp(t, "^"+strings.ReplaceAll(row.want, `"N"`, `"[0-9]+"`)+"$", row.call(t))
	}
	_, err = c.Take(t.Context(), &tickflakev1.TakeRequest{After: math.MaxInt64})
	assert.Equal(t, codes.InvalidArgument, status.Code(err), "an ID that the layout does not have")
}

// A drain ends streams, and answers the calls that run.
func TestDrainOfStreams(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) { c.Generator, c.UseWithin = four(t, strategies.Wait()), 1500*time.Millisecond })
		conn := r.rpc()
		health := grpc_health_v1.NewHealthClient(conn)
		watch, err := health.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: tickflakev1.TickflakeService_ServiceDesc.ServiceName})
		require.NoError(t, err)
		state, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, state.Status)
		reflected, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		require.NoError(t, reflected.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}))
		listed, err := reflected.Recv()
		require.NoError(t, err)
		require.Contains(t, listed.String(), tickflakev1.TickflakeService_ServiceDesc.ServiceName)
		api, busy := tickflakev1.NewTickflakeServiceClient(conn), make(chan error)
		_, err = api.Take(t.Context(), &tickflakev1.TakeRequest{Count: new(int64(4))})
		require.NoError(t, err)
		go func() { _, err := api.Take(t.Context(), &tickflakev1.TakeRequest{}); busy <- err }()
		synctest.Wait()
		r.stop()
		ends(t, codes.Unavailable, func() error {
			next, err := watch.Recv()
			if err == nil {
				state = next
			}
			return err
		})
		require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, state.Status)
		ends(t, codes.Unavailable, ended(reflected))
		require.NoError(t, <-busy)
		require.NoError(t, <-r.ended)
	})
}

// A client that cancels its call, or goes away, frees it.
func TestCancel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) { c.Generator, c.Timeout = four(t, strategies.Wait()), time.Hour })
		client := tickflakev1.NewTickflakeServiceClient(r.rpc())
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { _, err := client.Take(ctx, &tickflakev1.TakeRequest{Count: new(int64(10_000))}); failed <- err }()
		leaves := r.connect(web, "POST /v1/ids?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		cancel()
		require.NoError(t, leaves.Close())
		require.Equal(t, codes.Canceled, status.Code(<-failed))
		synctest.Wait()
		began := time.Now()
		r.stop()
		require.NoError(t, <-r.ended)
		assert.Less(t, time.Since(began), 2*time.Second)
		assert.Len(t, lines(r.log(), `"code":"canceled"`), 0, "what the client did is no line of the log")
	})
}

// Every method but those of health asks for the token.
func TestEveryMethodAsksForTheToken(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-shop"
	r := start(t, listen, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Tokens: []string{token}, Rate: 0.001, Burst: 70}}
		c.UseWithin = 1500 * time.Millisecond
	})
	conn := r.rpc()
	names := []string{grpc_health_v1.Health_Check_FullMethodName, grpc_health_v1.Health_Watch_FullMethodName, grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName}
	desc := tickflakev1.TickflakeService_ServiceDesc
	for _, m := range desc.Methods {
		names = append(names, "/"+desc.ServiceName+"/"+m.MethodName)
	}
	for _, name := range names {
		for _, md := range []metadata.MD{nil, metadata.Pairs("authorization", "Bearer a-token-of-nobody"), metadata.Pairs("authorization", "Bearer "+token, "authorization", "Bearer "+token)} {
			ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(t.Context(), md))
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
			require.NoError(t, err)
			if err := stream.SendMsg(&tickflakev1.DescribeRequest{}); err != io.EOF { // the server has refused the call already
				require.NoError(t, err)
			}
			require.NoError(t, stream.CloseSend())
			err = stream.RecvMsg(&tickflakev1.DescribeResponse{})
			cancel()
			assert.Equal(t, !strings.Contains(name, ".health."), status.Code(err) == codes.Unauthenticated, "%s: %v", name, err)
		}
	}
	client := tickflakev1.NewTickflakeServiceClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "bearer "+token)
	got, err := client.Describe(ctx, &tickflakev1.DescribeRequest{})
	require.NoError(t, err)
	require.Equal(t, []int64{70, 70}, []int64{got.MaxBatch, got.MaxNumbers}, "a client that asks for no more is not refused")
	_, err = client.Take(ctx, &tickflakev1.TakeRequest{Count: &got.MaxBatch})
	require.NoError(t, err)
}

// Streams, of which those of health need no token, are limited for each connection.
func TestLimitsOfCalls(t *testing.T) {
	t.Parallel()
	r := start(t, listen, func(c *service.Config) { c.MaxConnections, c.UseWithin = 2, 1500*time.Millisecond })
	conn := r.rpc()
	watching, leave := context.WithCancel(t.Context())
	watch := func(conn *grpc.ClientConn) error {
		stream, err := grpc_health_v1.NewHealthClient(conn).Watch(watching, &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	for range 4 {
		require.NoError(t, watch(conn))
	}
	require.Equal(t, codes.Unavailable, status.Code(watch(conn)))
	require.NoError(t, watch(r.rpc()))
	leave()
	watching = t.Context()
	require.Eventually(t, func() bool { return watch(conn) == nil }, 10*time.Second, time.Millisecond, "watches that were left count")
}

// Calls whose request never comes have a time to send it, once there are many of them.
func TestCallsWithoutARequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const most, each = 1024, 100
		r := start(t, pipe, nil)
		begin := func(conn *grpc.ClientConn) grpc.ClientStream {
			stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, tickflakev1.TickflakeService_Take_FullMethodName)
			require.NoError(t, err)
			return stream
		}
		var conn *grpc.ClientConn
		for i := range most {
			if i%each == 0 {
				conn = r.rpc()
			}
			begin(conn)
		}
		synctest.Wait()
		began := time.Now()
		late := begin(conn)
		require.Equal(t, codes.Unavailable, status.Code(late.RecvMsg(&tickflakev1.TakeResponse{})))
		assert.Equal(t, 2*time.Second, time.Since(began))
		_, err := tickflakev1.NewTickflakeServiceClient(conn).Take(t.Context(), &tickflakev1.TakeRequest{})
		require.NoError(t, err)
	})
}
