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
	ctx, url, layout := context.Background(), "redis://ids.internal:6379", snowflake.Default()
	gen, err := generator.Open(ctx, url, // of a store that all instances share
		generator.WithLayout(layout),
		generator.WithClock(monoclock.New(monoclock.WithResync(time.Second, 24*time.Hour))))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
}
