package generator_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
)

// This issues IDs for rows that have none, of which only the second is known.
func ExampleOpenPast() {
	slog.SetLogLoggerLevel(slog.LevelError)
	dir := must(os.MkdirTemp("", "ids"))
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store := must(stores.Open(ctx, dir))
	if err := lease.GivePast(ctx, store, lease.Past{From: 1016, To: 1023}); err != nil { // 'tickflake lease past' does so
		panic(err)
	}
	old, err := generator.OpenPast(ctx, dir, generator.WithPastUnit(time.Second))
	if err != nil {
		panic(err)
	}
	defer old.Close()
	second := time.Date(2026, 3, 4, 10, 20, 30, 0, time.UTC)
	for _, createdAt := range []time.Time{second, second, second.AddDate(0, -1, 0)} {
		id, err := old.At(ctx, createdAt)
		if err != nil {
			panic(err)
		}
		d := must(old.Layout().Decode(id))
		fmt.Printf("%s, node %d, sequence %d\n", d.Time.Format("2006-01-02T15:04:05.000Z"), d.Node, d.Sequence)
	}
	// Output:
	// 2026-03-04T10:20:30.000Z, node 1016, sequence 0
	// 2026-03-04T10:20:30.001Z, node 1016, sequence 0
	// 2026-02-04T10:20:30.000Z, node 1016, sequence 0
}
