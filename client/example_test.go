package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tickflake/tickflake/client"
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
