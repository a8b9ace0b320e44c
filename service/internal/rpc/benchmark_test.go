package rpc

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

func serveEmpty(b *testing.B) *grpc.ClientConn {
	s := grpc.NewServer(options(&issuer.Config{IdleTimeout: time.Hour, ReadTimeout: 10 * time.Second})...)
	tickflakev1.RegisterTickflakeServer(s, &empty{answer: &tickflakev1.TakeResponse{Runs: []*tickflakev1.Run{
		{First: 1 << 60, Count: 1, Stride: 1, UseWithin: durationpb.New(time.Second)},
	}}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	b.Cleanup(func() { s.Stop(); require.NoError(b, <-served) })
	return dial(b, listener.Addr().String())
}

// BenchmarkOverEmpty takes turns with the server that does nothing, and reports the medians
// and their quotient: the noise of the machine hits both alike.
func BenchmarkOverEmpty(b *testing.B) {
	_, conn := serve(b, config(b, wide(b)))
	clients := [2]tickflakev1.TickflakeClient{tickflakev1.NewTickflakeClient(serveEmpty(b)), tickflakev1.NewTickflakeClient(conn)}
	const calls, callers = 64, 8
	var took [2][]float64
	in := &tickflakev1.TakeRequest{Count: 1}
	for b.Loop() {
		for which, client := range clients {
			began := time.Now()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range calls / callers {
						if _, err := client.Take(context.Background(), in); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			took[which] = append(took[which], float64(time.Since(began).Nanoseconds())/calls)
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	none, ours := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(none, "ns/empty")
	b.ReportMetric(ours, "ns/take")
	b.ReportMetric(ours/none, "take/empty")
}

type empty struct {
	tickflakev1.UnimplementedTickflakeServer
	answer *tickflakev1.TakeResponse
}

func (e *empty) Take(context.Context, *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	return e.answer, nil
}

// BenchmarkStream is runs under credit: one request is always ahead.
func BenchmarkStream(b *testing.B) {
	_, conn := serve(b, config(b, wide(b)))
	for _, credit := range []int64{1000, 10_000} {
		b.Run(map[int64]string{1000: "credit=1000", 10_000: "credit=10000"}[credit], func(b *testing.B) {
			stream, err := tickflakev1.NewTickflakeClient(conn).Stream(b.Context())
			require.NoError(b, err)
			in := &tickflakev1.StreamRequest{Credit: credit}
			require.NoError(b, stream.Send(in))
			var ids int64
			b.ReportAllocs()
			var out tickflakev1.StreamResponse
			for b.Loop() {
				require.NoError(b, stream.Send(in))
				require.NoError(b, stream.RecvMsg(&out))
				for _, r := range out.Runs {
					ids += r.Count
				}
			}
			require.Equal(b, credit*int64(b.N), ids)
			b.ReportMetric(float64(ids)/b.Elapsed().Seconds(), "IDs/s")
			require.NoError(b, stream.CloseSend())
		})
	}
}

// wide is a layout of 262 million IDs/s, so that its end is not measured.
func wide(tb testing.TB) generator.Option {
	layout, err := snowflake.ParseLayout("41/4/18")
	require.NoError(tb, err)
	return generator.WithLayout(layout)
}
