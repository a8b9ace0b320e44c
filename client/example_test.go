package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func Example() {
	ctx := context.Background()
	ids, err := client.Open(ctx, []string{"ids-1:9380", "ids-2:9380"}) // all servers of the fleet
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()

	id, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	order, err := ids.Number(ctx, "orders")
	if errors.Is(err, client.ErrNotFound) {
		log.Fatal("create it with 'tickflake sequence create orders'")
	}
	fmt.Println(id, order, err)
}

// While no server answers, IDs come from a generator of this process. Its node number, 1001,
// belongs to no server and to no other process: an operator has reserved it with
//
//	tickflake lease reserve 1001 --until 2030-01-01 --store URL
//
// in the store of the servers. Its directory keeps it from repeating IDs after a restart.
func ExampleWithFallback() {
	ctx := context.Background()
	own, err := generator.Open(ctx, "/var/lib/ids", generator.WithNode(1001)) // and the servers' layout
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
	ids, err := client.Open(ctx, []string{"ids-1:9380", "ids-2:9380"}, client.WithFallback(fallback))
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	if layout, mine := ids.Layout(), own.Layout(); layout.String() != mine.String() {
		log.Fatalf("the servers have the layout %s, and the fallback has %s", layout, mine)
	}
}

// nextID is all that the rest of the program knows.
type nextID func(context.Context) (snowflake.ID, error)

// library has the IDs of a generator in this process, which needs a directory or a store of its own.
func library(ctx context.Context) (nextID, io.Closer, error) {
	gen, err := generator.Open(ctx, "/var/lib/orders")
	if err != nil {
		return nil, nil, err
	}
	return gen.NextContext, gen, nil
}

// service has the IDs of the servers of a fleet.
func service(ctx context.Context) (nextID, io.Closer, error) {
	ids, err := client.Open(ctx, []string{"ids-1:9380", "ids-2:9380"})
	if err != nil {
		return nil, nil, err
	}
	return ids.Next, ids, nil
}

// A program with a generator of its own moves to the service, or back, by one line.
func Example_move() {
	ctx := context.Background()
	open := service
	if len(os.Args) > 1 && os.Args[1] == "--library" {
		open = library
	}
	next, ids, err := open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(next(ctx))
}
