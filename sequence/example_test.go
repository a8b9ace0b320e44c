package sequence_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Numbers of orders, one by one and ten in a row.
func ExampleOpen() {
	ctx := context.Background()
	store := storetest.NewMemory() // in production, stores.Open, or the Store of a generator
	orders, err := sequence.Open(ctx, store, "orders", sequence.WithDefinition(sequence.Definition{}))
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close() // gives back the numbers that are reserved, and not the store
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.NextN(ctx, 10)) // 2 to 11
	fmt.Println(orders.Next(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 12 <nil>
}

// Invoices that begin at 1 each fiscal year, from October on.
func ExampleNewPeriod() {
	ctx := context.Background()
	fiscal := sequence.NewPeriod("fiscal", func(at time.Time) string {
		return fmt.Sprintf("fy%d", at.AddDate(0, 3, 0).Year())
	})
	invoices, err := sequence.OpenPeriods(ctx, storetest.NewMemory(), "invoices", fiscal, sequence.WithDefinition(sequence.Definition{}))
	if err != nil {
		log.Fatal(err)
	}
	defer invoices.Close()
	for _, month := range []time.Month{time.August, time.September, time.October} {
		fmt.Println(invoices.Next(ctx, time.Date(2027, month, 1, 0, 0, 0, 0, time.UTC)))
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 1 <nil>
}
