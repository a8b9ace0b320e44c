package zookeeper_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/zookeeper"
)

// Each process of the fleet does the same, and gets a node number of its own.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store, err := zookeeper.Open(ctx, "zk://127.0.0.1:2181?namespace=orders")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // gives the node number back, before the store is closed

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}
