package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/storetest"
)

// A node number from a store of one's own, for a generator.
func ExampleClaim() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // tries until then
	defer cancel()
	store := storetest.NewMemory() // in production, stores.Open
	keeper, err := lease.Claim(ctx, store, lease.WithNode(7), lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // closes the keeper, which releases the number
	_, err = gen.Next()
	fmt.Println(gen.Node(), err, keeper.Stats().Window)
	// Output: 7 <nil> 30s
}

// Who holds which node number. Old generators, which do not use the store, have the number 3 until a date.
func ExampleList() {
	ctx := context.Background()
	store := storetest.NewMemory() // in production, stores.Open
	silent := lease.WithLogger(slog.New(slog.DiscardHandler))
	if err := lease.Reserve(ctx, store, 3, 3, time.Now().AddDate(0, 6, 0)); err != nil {
		log.Fatal(err)
	}
	_, err := lease.Claim(ctx, store, silent, lease.WithNode(3))
	fmt.Println("refused:", errors.Is(err, lease.ErrHeld))
	keeper, err := lease.Claim(ctx, store, silent, lease.WithNode(7), lease.WithOwner("orders-1"))
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	holdings, err := lease.List(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range holdings {
		fmt.Printf("%d %s %q\n", h.Node, h.State, h.Owner)
	}
	// Output:
	// refused: true
	// 3 reserved ""
	// 7 held "orders-1"
}
