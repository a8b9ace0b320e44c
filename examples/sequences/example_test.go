package sequences_test

import (
	"context"
	"fmt"
	"log"
	"os"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

func Example() {
	ctx := context.Background()
	url, err := os.MkdirTemp("", "tickflake-sequences-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(url) }()

	store, err := stores.Open(ctx, url) // a directory, or the URL of a server
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	orders, err := sequence.Open(ctx, store, "orders",
		sequence.WithDefinition(sequence.Definition{})) // created if there is none
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close() // gives unused numbers back; its error is logged
	number, err := orders.Next(ctx)

	fmt.Println(number, err)

	site := sequence.Definition{Stride: sequence.Every(2, 0)} // 1, 3, 5, …; the other site: Every(2, 1)
	if err := sequence.Create(ctx, store, "invoices", site); err != nil {
		log.Fatal(err)
	}
	invoices, err := sequence.Open(ctx, store, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	defer invoices.Close()
	first, err := invoices.NextN(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}

	by := invoices.Definition().Stride.By()
	for i := range int64(10) {
		number := first + i*by
		fmt.Print(number, " ")
	}

	fmt.Println(invoices.Next(ctx))
	// Output:
	// 1 <nil>
	// 1 3 5 7 9 11 13 15 17 19 21 <nil>
}
