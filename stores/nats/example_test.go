package nats_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/nats"
)

// Each process of the fleet does the same, and gets a node number of its own.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := issue(ctx, "nats://127.0.0.1:4222?namespace=orders")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(id)
}

// issue issues one ID. A service opens the store and makes the generator once, and
// closes them when it ends.
func issue(ctx context.Context, storeURL string) (snowflake.ID, error) {
	store, err := nats.Open(ctx, storeURL)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		return 0, err
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return 0, err
	}
	defer gen.Close() // gives the node number back, before the store is closed
	return gen.Next()
}
