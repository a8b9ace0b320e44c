package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func Example() {
	ctx := context.Background()
	address, stop := serve()
	defer stop()
	ids, err := client.Open(ctx, []string{address}) // give all servers of the fleet
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()

	first, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := ids.Decode(first)
	if err != nil {
		log.Fatal(err)
	}
	order, err := ids.Number(ctx, "orders")
	if err != nil {
		log.Fatal(err)
	}
	_, err = ids.Number(ctx, "invoices")
	fmt.Println(first < second, decoded.Node, order, errors.Is(err, client.ErrNotFound))
	// Output: true 7 1 true
}

// While no server answers, IDs come from a generator of this process. Its node number, 1001,
// belongs to no server and to no other process: an operator has reserved it with
//
//	tickflake lease reserve 1001 --until 2030-01-01 --store URL
//
// in the store of the servers. Its directory keeps it from repeating IDs after a restart.
func ExampleWithFallback() {
	ctx := context.Background()
	directory, err := os.MkdirTemp("", "ids")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	own, err := generator.Open(ctx, filepath.Join(directory, "own"), generator.WithNode(1001)) // and the servers' layout
	if err != nil {
		log.Fatal(err)
	}
	defer own.Close()

	fallback := func(ctx context.Context, cause error) (snowflake.ID, error) {
		if errors.Is(cause, client.ErrBusy) {
			return 0, cause // keep to the rate limit of the servers
		}
		return own.NextContext(ctx)
	}
	address, stop := serve()
	ids, err := client.Open(ctx, []string{address}, client.WithFallback(fallback), client.WithTimeout(100*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	if layout, mine := ids.Layout(), own.Layout(); layout.String() != mine.String() {
		log.Fatalf("the servers have the layout %s, and the fallback has %s", layout, mine)
	}
	stop()

	id, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := ids.Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decoded.Node, ids.Stats().Fallbacks)
	// Output: 1001 1
}

// server is a small server for the examples; "tickflake serve" is the real one.
type server struct {
	tickflakev1.UnimplementedTickflakeServer
	generator *generator.Generator
	orders    int64
}

func serve() (address string, stop func()) {
	g, err := generator.New(generator.WithNode(7))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	tickflakev1.RegisterTickflakeServer(s, &server{generator: g})
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), s.Stop
}

func (s *server) Describe(context.Context, *tickflakev1.DescribeRequest) (*tickflakev1.DescribeResponse, error) {
	layout := s.generator.Layout()
	return &tickflakev1.DescribeResponse{Layout: layout.String(), MaxBatch: 4096}, nil
}

func (s *server) Take(ctx context.Context, r *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, error) {
	response := &tickflakev1.TakeResponse{}
	for left := r.GetCount(); left > 0; {
		run, err := s.generator.NextRun(ctx, left)
		if err != nil {
			return nil, err
		}
		left -= run.Count
		response.Runs = append(response.Runs, &tickflakev1.Run{
			First: int64(run.First), Count: run.Count, Stride: run.Stride, UseWithin: durationpb.New(time.Second),
		})
	}
	return response, nil
}

func (s *server) Number(_ context.Context, r *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, error) {
	if r.GetName() != "orders" {
		return nil, status.Error(codes.NotFound, "there is no such sequence")
	}
	first := s.orders + 1
	s.orders += r.GetCount()
	return &tickflakev1.NumberResponse{First: first, Last: s.orders, Count: r.GetCount(), Stride: 1}, nil
}
