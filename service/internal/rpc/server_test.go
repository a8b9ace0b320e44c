package rpc

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// config is the configuration of an issuer for tests.
func config(t testing.TB, options ...generator.Option) issuer.Config {
	g, err := generator.New(append([]generator.Option{generator.WithNode(5)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return issuer.Config{
		Generator: g, Store: storetest.NewMemory(), Strategy: "wait 1s",
		MaxBatch: 10_000, MaxNumbers: 1000, MaxSequences: 10, Timeout: time.Hour, UseWithin: 1500 * time.Millisecond,
	}
}

// still is a configuration whose clock stands, with 4 IDs in each tick.
func still(t testing.TB, strategy strategies.Strategy) (issuer.Config, *clocktest.Virtual) {
	layout, err := snowflake.ParseLayout("41/4/2")
	require.NoError(t, err)
	clock := clocktest.NewVirtual(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	return config(t, generator.WithLayout(layout), generator.WithClock(clock), generator.WithStrategy(strategy)), clock
}

// define creates a sequence in the store of a configuration.
func define(t testing.TB, c issuer.Config, name string, d sequence.Definition) {
	s, err := sequence.Open(t.Context(), c.Store, name, sequence.WithDefinition(d))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// serve serves the configuration on loopback, and returns the server and a connection.
func serve(t testing.TB, c issuer.Config) (*Server, *grpc.ClientConn) {
	return serveObserved(t, c, observe.New(slog.New(slog.DiscardHandler), 0))
}

func serveObserved(t testing.TB, c issuer.Config, o *observe.Observer) (*Server, *grpc.ClientConn) {
	i, err := issuer.New(c)
	require.NoError(t, err)
	s := New(i, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		require.NoError(t, <-served)
		require.NoError(t, i.Close(context.Background()))
	})
	return s, dial(t, listener.Addr().String())
}

func dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestTakeReturnsRunsWithExactlyTheCount(t *testing.T) {
	t.Parallel()
	c := config(t)
	_, conn := serve(t, c)
	client := tickflakev1.NewTickflakeClient(conn)
	seen := make(map[snowflake.ID]bool)
	for _, n := range []int64{0, 1, 7, 10_000} {
		got, err := client.Take(t.Context(), &tickflakev1.TakeRequest{Count: n})
		require.NoError(t, err)
		ids := expand(t, got.Runs)
		require.Len(t, ids, int(max(n, 1)))
		for _, id := range ids {
			require.False(t, seen[id])
			seen[id] = true
			d, err := c.Generator.Layout().Decode(id)
			require.NoError(t, err)
			require.EqualValues(t, 5, d.Node)
		}
	}
}

// expand returns the IDs of runs, and checks what holds for all runs.
func expand(t testing.TB, runs []*tickflakev1.Run) []snowflake.ID {
	var ids []snowflake.ID
	for _, r := range runs {
		require.Positive(t, r.Count)
		require.GreaterOrEqual(t, r.UseWithin.AsDuration(), 1500*time.Millisecond)
		run := snowflake.Run{First: snowflake.ID(r.First), Count: r.Count, Stride: r.Stride}
		for i := range r.Count {
			ids = append(ids, run.At(i))
		}
	}
	require.IsIncreasing(t, ids)
	return ids
}

func TestDescribeSaysWhatTheIDsAre(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"41/4/18", "time=40,sequence=12,node=8,tick=10ms,epoch=2020-01-01"} {
		layout, err := snowflake.ParseLayout(spec)
		require.NoError(t, err)
		_, conn := serve(t, config(t, generator.WithLayout(layout)))
		client := tickflakev1.NewTickflakeClient(conn)
		got, err := client.Describe(t.Context(), &tickflakev1.DescribeRequest{})
		require.NoError(t, err)
		parsed, err := snowflake.ParseLayout(got.Layout)
		require.NoError(t, err)
		require.Equal(t, layout.String(), parsed.String())
		require.Equal(t, layout.Epoch.UTC(), got.Epoch.AsTime())
		require.Equal(t, layout.Tick, got.Tick.AsDuration())
		require.EqualValues(t, layout.TimeBits, got.TimeBits)
		require.EqualValues(t, layout.NodeBits, got.NodeBits)
		require.EqualValues(t, layout.SequenceBits, got.SequenceBits)
		require.Equal(t, layout.Order == snowflake.TimeSequenceNode, got.NodeLast)
		require.EqualValues(t, 5, got.Node)
		require.Equal(t, "wait 1s", got.Strategy)
		require.Equal(t, 1500*time.Millisecond, got.UseWithin.AsDuration())
		require.EqualValues(t, 10_000, got.MaxBatch)
		require.EqualValues(t, 1000, got.MaxNumbers)

		taken, err := client.Take(t.Context(), &tickflakev1.TakeRequest{Count: 3})
		require.NoError(t, err)
		if got.NodeLast {
			require.EqualValues(t, 1<<got.NodeBits, taken.Runs[0].Stride)
		}
		for _, id := range expand(t, taken.Runs) {
			decoded, err := client.Decode(t.Context(), &tickflakev1.DecodeRequest{Id: int64(id)})
			require.NoError(t, err)
			want, err := layout.Decode(id)
			require.NoError(t, err)
			require.Equal(t, int64(id), decoded.Id)
			require.Equal(t, want.Time, decoded.Time.AsTime())
			require.Equal(t, want.Node, decoded.Node)
			require.Equal(t, want.Parts, decoded.Parts)
			require.Equal(t, want.Sequence, decoded.Sequence)
		}
	}
}

// TestDescribeSaysWhatTheClientMayAskFor guards that a client which asks for no more than
// Describe says is not refused because of its burst.
func TestDescribeSaysWhatTheClientMayAskFor(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Clients = []issuer.Credential{{Name: "shop", Token: sha256.Sum256([]byte("token")), Rate: 1, Burst: 70, Sequences: []string{"*"}}}
	_, conn := serve(t, c)
	client := tickflakev1.NewTickflakeClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer token")
	got, err := client.Describe(ctx, &tickflakev1.DescribeRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 70, got.MaxBatch)
	require.EqualValues(t, 70, got.MaxNumbers)
	_, err = client.Take(ctx, &tickflakev1.TakeRequest{Count: 71})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = client.Take(ctx, &tickflakev1.TakeRequest{Count: got.MaxBatch})
	require.NoError(t, err)
}

func TestNumbersAreThoseOfTheSequence(t *testing.T) {
	t.Parallel()
	for mode, want := range map[sequence.Mode]tickflakev1.Mode{
		sequence.Segmented: tickflakev1.Mode_MODE_SEGMENTED, sequence.Ordered: tickflakev1.Mode_MODE_ORDERED,
	} {
		c := config(t)
		define(t, c, "orders", sequence.Definition{Mode: mode, Start: 100, Stride: sequence.Every(10, 3), Max: 10_000})
		_, conn := serve(t, c)
		client := tickflakev1.NewTickflakeClient(conn)
		first, err := client.Number(t.Context(), &tickflakev1.NumberRequest{Name: "orders"})
		require.NoError(t, err)
		require.Equal(t, []int64{103, 103, 1, 10}, []int64{first.First, first.Last, first.Count, first.Stride})
		require.Equal(t, want, first.Mode)
		next, err := client.Number(t.Context(), &tickflakev1.NumberRequest{Name: "orders", Count: 5})
		require.NoError(t, err)
		require.Equal(t, []int64{113, 153, 5, 10}, []int64{next.First, next.Last, next.Count, next.Stride})
		got, err := client.GetSequence(t.Context(), &tickflakev1.GetSequenceRequest{Name: "orders"})
		require.NoError(t, err)
		info, err := sequence.Inspect(t.Context(), c.Store, "orders")
		require.NoError(t, err)
		q := got.Sequence
		require.Equal(t, "orders", q.Name)
		require.Equal(t, want, q.Mode)
		require.Equal(t, []int64{100, 10, 3, 10_000, info.Next, info.Last, info.Left}, []int64{q.Start, q.Stride, q.Offset, q.Max, q.Next, q.Last, q.Left})
		require.GreaterOrEqual(t, q.Last, int64(153))
		require.False(t, q.WentBack)
	}
}
