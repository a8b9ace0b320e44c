package docs

import (
	"context"
	"log"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// The functions of this file hold code of pages that no other test has, so that it is compiled.

func Example_layout() {
	ctx := context.Background()
	gen, err := generator.Open(ctx, "ids", generator.WithLayout(snowflake.JavaScript()))
	if err != nil {
		log.Fatal(err)
	}
	if err := gen.Restored(ctx); err != nil {
		log.Fatal(err)
	}
}

func number(ctx context.Context) (int64, error) {
	store, err := stores.Open(ctx, "/var/lib/orders/ids")
	if err != nil {
		return 0, err
	}
	defer store.Close()
	invoices, err := sequence.Open(ctx, store, "invoices", sequence.WithDefinition(sequence.Definition{Start: 1}))
	if err != nil {
		return 0, err
	}
	defer invoices.Close()    // gives the rest of its numbers back; its error is logged
	return invoices.Next(ctx) // 1, 2, 3, …
}

func Example_number() {
	if _, err := number(context.Background()); err != nil {
		log.Fatal(err)
	}
}
