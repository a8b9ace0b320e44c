package docs

import (
	"context"
	"log"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
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
