package stores_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// The engine is that of import _ "github.com/tickflake/tickflake/stores/etcd". The deadline bounds how long Open waits for
// a server. What the store may lose goes to the program's logger.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	store, err := stores.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379?namespace=orders", stores.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	cell, err := store.Read(ctx, "seq/invoices")
	fmt.Println(cell.Version, err)
}
