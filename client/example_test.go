package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
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
// in the store of the servers. Its directory keeps it from repeating IDs after a restart. A random number, or one that is drawn,
// is not safe.
func Example_unavailable() {
	ctx := context.Background()
	ids, err := client.Open(ctx, []string{"ids-1:9380", "ids-2:9380"})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	own, err := generator.Open(ctx, "/var/lib/ids", generator.WithNode(1001), generator.WithLayout(ids.Layout()))
	if err != nil {
		log.Fatal(err)
	}
	defer own.Close()

	id, err := ids.Next(ctx)
	if errors.Is(err, client.ErrUnavailable) && !errors.Is(err, client.ErrBusy) { // keep to the rate limit of the servers
		id, err = own.NextContext(ctx)
	}
	fmt.Println(id, err)
}
