package docs

import (
	"context"
	"log"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
)

// The code of pages that no other test has, so that it is compiled.
func Example_layout() {
	ctx := context.Background()
	gen, err := generator.Open(ctx, "ids", generator.WithLayout(snowflake.JavaScript()))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
}

func Example_serverless() {
	ctx, url := context.Background(), "redis://ids.internal:6379"
	layout, err := snowflake.ParseLayout("41/12/10") // time, node, sequence
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.Open(ctx, url, // of a store that all instances share; import its engine
		generator.WithLayout(layout),
		generator.WithClock(monoclock.New(monoclock.WithResync(time.Second, 24*time.Hour))))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
}
