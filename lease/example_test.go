package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Who holds which node number.
func ExampleList() {
	ctx := context.Background()
	store := storetest.NewMemory() // in production, stores.Open
	keeper, err := lease.Claim(ctx, store, lease.WithOwner("orders-1"), lease.WithNode(7),
		lease.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	show := func() {
		holdings, err := lease.List(ctx, store)
		if err != nil {
			log.Fatal(err)
		}
		for _, h := range holdings {
			fmt.Printf("%d %s %q\n", h.Node, h.State, h.Owner)
		}
	}
	show()
	if err := keeper.Close(); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// 7 held "orders-1"
	// 7 released ""
}

// Old generators, which do not use the store, have the node numbers 0 to 3 until a date.
func ExampleReserve() {
	ctx := context.Background()
	store := storetest.NewMemory()
	silent := lease.WithLogger(slog.New(slog.DiscardHandler))
	fmt.Println(lease.Reserve(ctx, store, 0, 3, time.Now().AddDate(0, 6, 0)))

	keeper, err := lease.Claim(ctx, store, silent)
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	fmt.Println("another number:", keeper.Node() > 3)
	_, err = lease.Claim(ctx, store, silent, lease.WithNode(2))
	fmt.Println("a reserved one:", errors.Is(err, lease.ErrHeld))
	// Output:
	// <nil>
	// another number: true
	// a reserved one: true
}
