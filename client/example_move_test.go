package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

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
