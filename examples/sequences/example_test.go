package sequences_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// directory returns a new directory for a store.
func directory() (url string, remove func()) {
	dir, err := os.MkdirTemp("", "tickflake-sequences-")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(dir, "store"), func() { _ = os.RemoveAll(dir) }
}

func Example() {
	ctx := context.Background()
	url, remove := directory()
	defer remove()

	store, err := stores.Open(ctx, url) // a directory, or the URL of a server
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	orders, err := sequence.Open(ctx, store, "orders",
		sequence.WithDefinition(sequence.Definition{Start: 1})) // created if there is none
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close() // gives unused numbers back; its error is logged
	number, err := orders.Next(ctx)

	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(number)
	// Output: 1
}

// Ten numbers with a stride of 2 are 1, 3, … 19, and the next one is 21.
func Example_nextN() {
	ctx := context.Background()
	url, remove := directory()
	defer remove()
	store, err := stores.Open(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	site := sequence.Definition{Start: 1, Stride: sequence.Every(2, 0)} // 1, 3, 5, …; the other site: Every(2, 1)
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

	next, err := invoices.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next)
	// Output: 1 3 5 7 9 11 13 15 17 19 21
}
