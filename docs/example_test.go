package docs

import (
	"context"
	"log"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// The code of a page that no other test has, so that it is compiled.
func Example_layout() {
	ctx := context.Background()
	gen, err := generator.Open(ctx, "ids", generator.WithLayout(snowflake.JavaScript()))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
}
