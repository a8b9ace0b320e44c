package oteltickflake_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/oteltickflake"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// The body of this example stands in README.md.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	gen, err := generator.Open(ctx, "ids")
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
	metrics, err := oteltickflake.Observe(gen, oteltickflake.WithNamespace("orders"))
	if err != nil {
		log.Fatal(err)
	}
	defer metrics.Unregister()

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}

// The first calls stand in README.md. It is compiled, and not run: there is no such server.
func ExampleWrap() {
	ctx := context.Background()
	store, err := stores.Open(ctx, "etcd://10.0.0.5:2379")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, oteltickflake.Wrap(store))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()

	orders, err := sequence.Open(ctx, oteltickflake.Wrap(store), "orders")
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	metrics, err := oteltickflake.ObserveSequence(orders, oteltickflake.WithNamespace("shop"))
	if err != nil {
		log.Fatal(err)
	}
	defer metrics.Unregister()
}
