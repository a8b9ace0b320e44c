package redis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/redis"
)

// A process of a fleet that issues IDs.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	store, err := redis.Open(ctx, "rediss://ids:secret@redis.example:6379/0?replicas=1&namespace=orders")
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = store.Close() }()

	// Once, where somebody reads it: the settings with which the server can lose writes.
	warnings, err := store.Warnings(ctx)
	for _, warning := range warnings {
		log.Print(warning)
	}
	if err != nil {
		log.Print(err)
	}

	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		log.Print(err)
		return
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = gen.Close() }() // which releases the lease
	id, err := gen.Next()
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(id)
}
