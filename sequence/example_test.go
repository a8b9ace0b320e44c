package sequence_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

func Example() {
	ctx := context.Background()
	store := storetest.NewMemory() // stores.Open(ctx, "ids") opens a directory that outlasts the process

	orders, err := sequence.Open(ctx, store, "orders", sequence.WithDefinition(sequence.Definition{Start: 1001}))
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		number, err := orders.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(number)
	}
	if err := orders.Close(); err != nil { // gives the rest back
		log.Fatal(err)
	}

	info, err := sequence.Inspect(ctx, store, "orders")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the next process begins with", info.Next)
	// Output:
	// 1001
	// 1002
	// 1003
	// the next process begins with 1004
}
