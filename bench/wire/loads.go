package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
)

// turn is what a load did.
type turn struct {
	operations float64 // requests or IDs, whichever are counted
	perSecond  float64 // operations
	p50, p99   float64 // milliseconds; 0 if not measured
}

// load makes about n operations.
type load func(ctx context.Context, n int) (turn, error)

const (
	batch   = 1000   // IDs of a request where they are taken in batches
	credit  = 10_000 // of a request of a stream
	ahead   = 4      // requests of a stream that are out
	streams = 2
	callers = 50 // of unary calls, as redis-benchmark has connections
	clients = 8  // of batches
)

// together runs f in n goroutines, and returns what they did in all.
func together(n int, f func(i int) (operations int, err error)) (turn, error) {
	var all sync.WaitGroup
	done, errs := make([]int, n), make([]error, n)
	began := time.Now()
	for i := range n {
		all.Go(func() { done[i], errs[i] = f(i) })
	}
	all.Wait()
	took := time.Since(began)
	var t turn
	for _, d := range done {
		t.operations += float64(d)
	}
	t.perSecond = t.operations / took.Seconds()
	return t, errors.Join(errs...)
}

// rpc is a client of a gRPC server, with a few connections.
type rpc struct {
	conns   []*grpc.ClientConn
	clients []tickflakev1.TickflakeClient
}

func newRPC(addr string) (*rpc, error) {
	r := &rpc{}
	for range streams {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.conns, r.clients = append(r.conns, conn), append(r.clients, tickflakev1.NewTickflakeClient(conn))
	}
	return r, nil
}

func (r *rpc) close() error {
	var errs []error
	for _, c := range r.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// unary calls Take for one ID at a time, n times in all.
func (r *rpc) unary(ctx context.Context, n int) (turn, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return together(callers, func(i int) (done int, err error) {
		client := r.clients[i%len(r.clients)]
		for left.Add(-1) >= 0 {
			answer, err := client.Take(ctx, &tickflakev1.TakeRequest{Count: 1})
			if err != nil {
				return done, err
			}
			if len(answer.Runs) != 1 || answer.Runs[0].Count != 1 {
				return done, fmt.Errorf("gRPC: asked for one ID and got the runs %v", answer.Runs)
			}
			done++
		}
		return done, nil
	})
}

// stream takes n IDs or a few more by streams.
func (r *rpc) stream(ctx context.Context, n int) (turn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return together(len(r.clients), func(i int) (int, error) {
		s, err := r.clients[i].Stream(ctx)
		if err != nil {
			return 0, err
		}
		got, asked := 0, 0
		last := int64(0)
		for got*len(r.clients) < n {
			for asked < got+ahead*credit {
				if err := s.Send(&tickflakev1.StreamRequest{Credit: credit}); err != nil {
					return got, err
				}
				asked += credit
			}
			answer, err := s.Recv()
			if err != nil {
				return got, err
			}
			for _, run := range answer.Runs {
				if run.First <= last || run.Count < 1 {
					return got, fmt.Errorf("gRPC: a stream has the run %v after the ID %d", run, last)
				}
				last = run.First + (run.Count-1)*run.Stride
				got += int(run.Count)
			}
			if got > asked {
				return got, fmt.Errorf("gRPC: a stream sent %d IDs, and was asked for %d", got, asked)
			}
		}
		return got, nil
	})
}
